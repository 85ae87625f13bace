"""Training losses beside YaRN's: of whole records of the same sequences alone, by hand."""

import contextlib

import numpy as np
import pytest

from analysis.beyond import training
from core.errors import InputError

RUN = {"factor": 2, "options": {}, "seed": 0, "length": 16384, "batch": 1, "steps": 2}


def record(method, losses, data_facts, **run):
    return {
        "run": {"method": method} | run,
        "scores": {"losses": losses},
        "data_facts": data_facts,
    }


@pytest.mark.parametrize(
    "change, says",
    [
        ({}, None),
        ({"losses": [3.0, float("nan")]}, "it holds NaN"),
        ({"losses": [3.0]}, "different numbers of samples"),
        ({"losses": [3.0], "steps": 1}, "no gap"),
        ({"data_facts": {"sha256": "b"}}, "other sequences than .*, or in another order"),
        ({"data_facts": {}}, "other sequences than .*, or in another order"),
        ({"seed": 1}, "no gap"),
        ({"length": 8192}, "no gap"),
        ({"batch": 2}, "no gap"),
        ({"dtype": "float32"}, "no gap"),
        ({"data": [["Book.txt", "b"]], "data_facts": {"sha256": "b"}}, "no gap"),  # another corpus
    ],
)
def test_only_whole_records_of_the_same_sequences_are_compared(recorder, change, says):
    usual = RUN | {"data_facts": {"sha256": "a"}}
    recorder.records = {
        "finetune/yarn.json": record("yarn", **usual, losses=[3, 2.5]),
        "finetune/pi.json": record("pi", **usual | {"losses": [3.5, 2.75]} | change),
    }
    refused = says and says != "no gap"
    with pytest.raises(InputError, match=says) if refused else contextlib.nullcontext():
        found = training.gaps(recorder.results())
        expected = [] if says else [("pi", 0, 1, [0.5, 0.25])]
        assert [(gap.setting.method, *gap[1:3], gap.by_step.tolist()) for gap in found] == expected


def test_quarters_by_hand():
    """Errors are those of two steps each: half of their distance."""
    assert training.quarters(np.array([4.0, 2, 3, 1, 1, 1, 0, 1])) == pytest.approx(
        np.array([(3, 1), (2, 1), (1, 0), (0.5, 0.5)])
    )


@pytest.mark.parametrize("last, closing", [([0.0, 0.2], True), ([0.0, 1.0], False)])
def test_a_gap_still_closes_if_its_last_quarter_is_clearly_below_the_third(last, closing):
    assert training.still_closing(np.array([4, 2, 3, 1, 1, 1, *last])) == closing


def test_a_slope_with_a_level_for_each_book_is_that_of_least_squares():
    rng = np.random.default_rng(0)
    order = rng.integers(0, 5, 64)
    by_step = rng.normal(0, 1, 64) + order - 0.1 * np.arange(64)
    levels = (order[:, None] == np.arange(5)).astype(float)[16:]
    design = np.column_stack([levels, np.arange(16, 64)])
    weights, rest, rank, _ = np.linalg.lstsq(design, by_step[16:])
    variance = np.linalg.inv(design.T @ design)[-1, -1] * rest[0] / (48 - rank)
    found = training.slope(by_step, order.tolist(), 16)
    assert found == pytest.approx((16 * weights[-1], 16 * np.sqrt(variance)))
