"""The float32 histogram against a literal PyTorch loop, and the six numbers of the paper's table."""

import numpy as np
import pandas as pd
import pytest
import torch

from core.disturbance import disturbance, select_interpolated
from core.released_code import COUNT_OFFSET, angle_distribution_float32, inv_freq_float32
from core.rope import RopeGeometry, scale
from experiments import base_models
from experiments.kit import records
from experiments.kit.records import RESULTS

LLAMA2 = RopeGeometry(128, 10000.0, 4096)


def test_histogram_is_that_of_a_loop_over_tensors():
    pairs, length, intervals = (0, 6, 22, 63), 600, 360
    inv_freq = 1 / (10000 ** (torch.arange(0, 128, 2).float() / 128))
    expected = torch.full((len(pairs), intervals), torch.finfo(torch.float16).tiny)
    for row, pair in enumerate(pairs):
        for m in range(length):
            angle = (inv_freq[pair] * torch.tensor(m)) % (2 * torch.pi)
            expected[row][int(torch.floor((intervals / (2 * torch.pi)) * angle))] += 1
    ours = angle_distribution_float32(inv_freq_float32(LLAMA2)[list(pairs)], length, intervals)
    assert np.array_equal(ours, (expected / length).numpy())
    assert ours.min() == COUNT_OFFSET / np.float32(length)


@pytest.mark.parametrize("head_dim, base", [(128, 10000.0), (64, 100000.0), (64, 1300.0)])
def test_frequencies_do_not_depend_on_the_processor(head_dim, base):
    """Against Python's own floats: every step rounded to float32, the power computed exactly enough to be so."""
    expected = [np.float32(1) / np.float32(base ** float(np.float32(2 * i / head_dim))) for i in range(head_dim // 2)]
    assert inv_freq_float32(RopeGeometry(head_dim, base, 1024)).tolist() == [float(value) for value in expected]


@pytest.mark.parametrize("own_name", ["llama2-7b", "smollm2"])
@pytest.mark.parametrize("factor", [2, 4])
def test_the_recorded_selection_comes_out_here(own_name, factor):
    """At t = 0 one unit in the last place of a frequency turns a pair: as it did between two kinds of processor."""
    geometry = base_models.get(own_name).geometry
    inv_freq = inv_freq_float32(geometry)
    before = angle_distribution_float32(inv_freq, geometry.context_length)
    longer = round(factor * geometry.context_length)
    strategies = [
        disturbance(angle_distribution_float32(frequencies, longer), before, "released", epsilon=0)
        for frequencies in (inv_freq / np.float32(factor), inv_freq)
    ]
    record = records.read(records.path(RESULTS, own_name, "disturbance", f"dprope_s={factor:g}"))
    (row,) = [row for row in record["scores"] if row["precision"] == "float32"]
    assert 2 * int(select_interpolated(*strategies).sum()) == row["interpolated_dimensions"]


@pytest.mark.parametrize("factor", [2, 4])
def test_the_published_table_within_0_4_percent(factor):
    published = pd.read_csv(RESULTS / "paper" / "disturbance.csv").set_index(["method", "factor"])["disturbance_e3"]
    inv_freq = inv_freq_float32(LLAMA2)
    before = angle_distribution_float32(inv_freq, 4096)

    def moved(divisor):
        after = angle_distribution_float32(inv_freq / divisor.astype(np.float32), 4096 * factor)
        return disturbance(after, before, "released", epsilon=0)

    interpolation, extrapolation = moved(np.full(64, factor)), moved(np.ones(64))
    ours = np.where(select_interpolated(interpolation, extrapolation), interpolation, extrapolation)
    yarn = moved(LLAMA2.inv_freq / scale(LLAMA2, "yarn", factor).inv_freq)
    for method, values in (("pi", interpolation), ("yarn", yarn), ("dprope", ours)):
        assert 1e3 * values.mean() == pytest.approx(published[method, factor], rel=0.004), method
