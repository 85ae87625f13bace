"""Figures draw the records' numbers, and the same records give the same bytes."""

import importlib
import json

import numpy as np
import pytest

from core.angles import angle_distribution
from core.errors import InputError
from core.rope import RopeGeometry
from experiments import records, scales
from experiments.records import RESULTS
from figures import angle_distribution as figure_1
from figures import common, disturbance, disturbance_strategies, extension, frequency, interpolation, passkey
from tables.extension import comparison, factors, fine_tuned

LLAMA2 = RopeGeometry(128, 10000.0, 4096)
ALL = {
    "interpolation": "llama2-7b",
    "angle_distribution": "llama2-7b",
    "frequency": "llama2-7b",
    "distribution_complete": "llama2-7b",
    "disturbance_strategies": "llama2-7b",
    "disturbance": "llama2-7b",
    "extension": "smollm2",
    "passkey": "tiny",
    "disturbance_longbench": "tiny",
    "selections": "tiny",
    "whole_texts": "smollm2",
}


@pytest.mark.parametrize("name", ALL)
def test_same_records_same_bytes(name, tmp_path):
    module = importlib.import_module(f"figures.{name}")
    common.use_style()
    for run in ("a", "b"):
        common.save(module.build(RESULTS, ALL[name]), name, tmp_path / run)
    for suffix in ("pdf", "png"):
        first, second = ((tmp_path / run / f"{name}.{suffix}").read_bytes() for run in ("a", "b"))
        assert first == second and len(first) > 5000


def test_frequency_shows_the_first_24_intervals_of_pairs_6_and_22():
    axes = frequency.build(RESULTS, "llama2-7b").axes
    for panel, pair in zip(axes, (6, 22)):
        heights = np.array([[bar.get_height() for bar in bars] for bars in panel.containers])
        theta = LLAMA2.inv_freq[[pair]]
        expected = [
            angle_distribution(theta, 4096)[0],
            angle_distribution(theta / 2, 8192)[0],
            angle_distribution(theta, 8192)[0],
        ]
        assert heights == pytest.approx(100 * np.array(expected)[:, :24])


def test_figure_1_shows_a_pair_for_either_strategy():
    panels = figure_1.build(RESULTS, "llama2-7b").axes
    assert "pair 22" in panels[0].get_title("left") and "pair 50, wavelength 8,379" in panels[1].get_title("left")


@pytest.mark.parametrize(
    ("module", "first", "last"), [(disturbance, "pi", "dprope"), (disturbance_strategies, "pi", "original")]
)
def test_disturbance_panels(module, first, last):
    figure = module.build(RESULTS, "llama2-7b")
    assert [axes.get_title("left") for axes in figure.axes] == ["8k (s = 2)", "16k (s = 4)"]
    for axes in figure.axes:
        lines = {line.get_label(): np.array(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) == 64}
        assert len(lines) == len(module.NAMES)
        if module is disturbance:
            assert (lines["DPRoPE (t = 0)"] <= lines["PI"]).all()
        else:  # past λ > L, extrapolation costs hundreds of times more
            assert (lines["extrapolation"][50:] > 100 * lines["interpolation"][50:]).all()


def test_extension_draws_one_line_per_method_and_marks_the_training_length():
    parts = []
    for factor in factors(RESULTS, "smollm2"):
        runs = comparison(RESULTS, "smollm2", factor)
        parts += [part for part in (runs, fine_tuned(RESULTS, "smollm2", runs[0])) if part]
    for axes, part in zip(extension.build(RESULTS, "smollm2").axes, parts, strict=True):
        curves = [line for line in axes.lines if len(line.get_xdata()) == len(part[0]["buckets"])]
        for line, run in zip(curves, part, strict=True):
            assert list(line.get_ydata()) == [bucket["mean"] for bucket in run["buckets"]]
        assert any(list(line.get_xdata()) == [8, 8] for line in axes.lines)


def test_the_illustration_marks_unseen_positions_and_angles():
    upper, lower = interpolation.build(RESULTS, "llama2-7b").axes
    count = {line.get_label(): len(line.get_xdata()) for line in (*upper.lines, *lower.lines)}
    assert count["unseen position"] == count["unseen angle"] == count["pre-trained"] == 12


def test_passkey_draws_the_recorded_accuracies():
    figure, preset = passkey.build(RESULTS, "smollm2"), scales.get("smollm2")
    found = {
        (run["method"], str(run["options"]), "training" in run): run
        for run in records.load(RESULTS, "smollm2", "passkey")
    }
    original = found["original", "{}", False]
    for axes, trained in zip(figure.axes, (False, True)):
        names = {(method, str(options)) for method, options in preset.comparison(2)} | {("clex", "{}")}
        runs = [found[*name, trained] for name in names if (*name, trained) in found and name[0] != "original"]
        runs.append(original)
        assert len(runs) == 7
        expected = {common.label(run): [row["mean"] for row in run["scores"]["by_length"]] for run in runs}
        assert {drawn.get_label(): list(drawn[0].get_ydata()) for drawn in axes.containers} == expected
        for place, drawn in enumerate(axes.containers):
            # Side by side around their length, 98 tokens apart, so that intervals do not hide each other.
            aside = (place - (len(runs) - 1) / 2) * 98.304 / 1024
            assert drawn[0].get_xdata() == pytest.approx(
                [row["length"] / 1024 + aside for row in original["scores"]["by_length"]]
            )
    heat = {axes.get_title(loc="left"): axes.images[0].get_array() for axes in figure.axes if axes.images}
    shown = {"original": original, "CLEX, s = 2": found["clex", "{}", True], "YaRN, s = 2": found["yarn", "{}", True]}
    for title, run in shown.items():
        cells = {(cell["depth"], cell["length"]): cell["mean"] for cell in run["scores"]["by_depth"]}
        assert heat[title].shape == (3, 4)
        assert heat[title].tolist() == [[cells[d, n] for n in original["lengths"]] for d in original["depths"]]


def test_passkey_without_the_comparison_says_so(tmp_path):
    records_of = tmp_path / "smollm2" / "passkey"
    records_of.mkdir(parents=True)
    record = json.loads((RESULTS / "smollm2" / "passkey" / "dprope_n-hat=28_s=2.json").read_text())
    (records_of / "n_hat.json").write_text(json.dumps(record | {"options": {"n_hat": 12}}))
    with pytest.raises(InputError, match="comparison"):
        passkey.build(tmp_path, "smollm2")
    original = (RESULTS / "smollm2" / "passkey" / "original_s=2.json").read_text()
    (records_of / "original.json").write_text(original)
    assert passkey.build(tmp_path, "smollm2").axes[0].get_title(loc="left") == "s = 2, without training"
