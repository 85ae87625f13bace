"""Figures draw the records' numbers, and the same records give the same pictures."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from analysis import drawing
from analysis.results import NotMeasured, Results
from core import rope
from core.angles import angle_distribution
from core.disturbance import disturbance as kl
from core.geometry import RopeGeometry
from figures import angles, disturbance
from figures.kit import draw, style
from records import ROOT
from tests.analysis.recorder import of_passkeys, score

LLAMA2 = RopeGeometry(128, 10000.0, 4096)


def test_every_figure_is_committed():
    """Each is there of some model, in both formats, and no other file."""
    names = {*drawing.declared("figures")}
    for suffix in ("pdf", "png"):
        files = (ROOT / "figures").rglob(f"*.{suffix}")
        assert {file.stem for file in files} == names


def test_a_committed_picture_is_what_the_records_give(tmp_path):
    """Without a date; pixels are compared, as another processor gives other last digits."""
    name = "angle_distribution"
    pdf, png = draw.save(draw.figure(name, Results.of("llama2-7b")), tmp_path / name)
    assert b"CreationDate" not in pdf.read_bytes()
    committed = ROOT / f"figures/llama2-7b/{name}.png"
    assert draw.is_same(draw.pixels(png.read_bytes()), committed.read_bytes())


def test_angles_are_those_of_the_papers_pairs_under_both_strategies():
    for axes, pair in zip(angles.frequency(Results.of("llama2-7b")).axes, (6, 22), strict=True):
        heights = np.array([[bar.get_height() for bar in bars] for bars in axes.containers])
        theta = LLAMA2.inv_freq[[pair]]
        within = [(theta, 4096), (theta / 2, 8192), (theta, 8192)]
        expected = 100 * np.array([angle_distribution(*each)[0] for each in within])
        assert heights == pytest.approx(expected[:, :24])


@pytest.mark.parametrize(
    "build, names",
    [
        (disturbance.disturbance, ["DPRoPE (t = 0)", "PI", "YaRN"]),
        (disturbance.disturbance_strategies, ["interpolation", "extrapolation"]),
    ],
)
def test_disturbance_is_drawn_pair_by_pair_at_each_factor_of_the_model(build, names):
    pretrained = angle_distribution(LLAMA2.inv_freq, 4096)
    for axes, factor in zip(build(Results.of("llama2-7b")).axes, (2, 4), strict=True):
        lines = {line.get_label(): line for line in axes.lines if len(line.get_xdata()) == 64}
        assert list(lines) == names
        expected = kl(angle_distribution(LLAMA2.inv_freq / factor, 4096 * factor), pretrained)
        interpolated = next(lines[name] for name in ("PI", "interpolation") if name in lines)
        assert interpolated.get_ydata() == pytest.approx(np.maximum(expected, 1e-5))
        # a line that others lie on is broad, and below them
        broad = [line for line in lines.values() if line.get_linewidth() > 3]
        assert [line.get_label() for line in broad] == names[:1] * (len(names) == 3)
        assert all(line.get_zorder() < interpolated.get_zorder() for line in broad)


def average(geometry, method="dprope", **options):
    pretrained = angle_distribution(geometry.inv_freq, geometry.context_length)
    inv_freq = rope.scale(geometry, method, 2, **options).inv_freq
    return 1e3 * kl(angle_distribution(inv_freq, 2 * geometry.context_length), pretrained).mean()


def points(axes):
    """Of each name of the legend."""
    drawn = {}
    for bars in axes.containers:
        (point,) = zip(*bars[0].get_data())
        drawn.setdefault(bars.get_label(), []).append(point)
    return {name: np.round(sorted(of), 4).tolist() for name, of in drawn.items()}


def test_scores_stand_over_disturbances_the_papers_beside_ours():
    results = Results.of("tiny")
    paper, ours, paper_methods, our_methods = disturbance.disturbance_longbench_e(results).axes

    # of the paper's Tables 4 and 1, 13B at s = 2
    printed = {96: 31.08, 88: 31.06, 80: 31.15, 72: 30.87, 64: 30.83, 56: 30.71}
    by_n_hat = sorted((average(LLAMA2, n_hat=n), value) for n, value in printed.items())
    assert points(paper) == {"DPRoPE (n̂)": np.round(by_n_hat, 4).tolist()}
    named = {int(text.get_text()): text.xy[0] for text in paper.texts}
    assert named == pytest.approx({n: average(LLAMA2, n_hat=n) for n in printed}, abs=1e-3)
    assert points(paper_methods) == points(paper) | {
        "PI": [[pytest.approx(average(LLAMA2, "pi"), rel=1e-3), 30.71]],
        "YaRN": [[pytest.approx(average(LLAMA2, "yarn"), rel=1e-3), 30.50]],
    }

    of_ours = [run for run in results.records("longbench_e") if run.seed == 0]
    options = [run.run["options"] for run in of_ours if run.run["factor"] == 2]
    moved = [average(results.geometry, **each) for each in options if "n_hat" in each]
    (drawn,) = points(ours).values()
    assert [x for x, _ in drawn] == pytest.approx(sorted(moved), abs=1e-4)
    assert points(our_methods).keys() == {"PI", "YaRN", "DPRoPE (t = 0)", "DPRoPE (n̂)"}


def test_an_ablation_of_n_hat_that_has_other_options_too_is_not_drawn(recorder):
    buckets = dict.fromkeys(("0-4k", "4-8k", "8k+"), score(30))
    scores = {"buckets": buckets, "averages": {"Avg.": score(30)}}
    recorder.add("longbench_e", "pi", scores)
    for n_hat in (20, 28):
        options = {"n_hat": n_hat, "attention_factor": 1.07}
        recorder.add("longbench_e", "dprope", scores, options=options)
    with pytest.raises(NotMeasured, match="ablation over n̂"):
        draw.figure("disturbance_longbench_e", recorder.results())


FIGURES = [
    (name, model)
    for name in drawing.declared("figures")
    for model in ("llama2-7b", "smollm2", "tiny")
    if drawing.place("figures", name, Results.of(model)).with_suffix(".png").is_file()
]


@pytest.mark.parametrize("name, model", FIGURES)
def test_a_figure_is_understood_without_its_text(name, model):
    """It names the model, explains its marks, is readable, has few lines to tell apart, no names
    that meet, and no title that is cut off."""
    results = Results.of(model)
    figure = draw.figure(name, results)
    legend = figure.legends[0].get_title().get_text() if figure.legends else ""
    title = figure.get_suptitle() or legend
    assert results.title in title or "illustration" in title
    assert figure.get_supxlabel()
    said = " ".join([figure.get_supxlabel(), *(axes.get_ylabel() for axes in figure.axes)])
    compares = name not in ("interpolation", "learned")
    assert not compares or any(word in said for word in ("better", "worse", "the paper aims at"))
    figure.draw_without_rendering()
    for text in figure.findobj(Text):
        assert text.get_fontsize() >= 6 or not text.get_text()
    for axes in figure.axes:
        assert len({line.get_label() for line in axes.lines if line.get_label()[0] != "_"}) <= 7
    texts = [text for axes in figure.axes for text in axes.texts]
    boxes = [Text.get_window_extent(text).padded(-0.5) for text in texts]
    for (one, first), (other, second) in itertools.combinations(zip(texts, boxes), 2):
        assert not first.overlaps(second), (one, other)
    titles = {axes.get_title(where) for axes in figure.axes for where in ("left", "center")} - {""}
    for text in figure.findobj(Text):
        if text.get_text() in titles:
            box = text.get_window_extent().padded(-2)
            assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, text.get_text()


def test_passkey_draws_the_recorded_shares_of_the_papers_methods_each_in_one_colour():
    """A panel for each state and factor; the maps show the recorded cells."""
    results = Results.of("tiny")
    figure = draw.figure("passkey", results)
    drawn = {}
    maps = {}
    colours = set()
    for axes in figure.axes:
        title = axes.get_title("left")
        for bars in axes.containers:
            drawn[title, bars.get_label()] = bars[0].get_ydata()
            colours.add((bars.get_label(), bars[0].get_color()))
        for image in axes.images:
            maps[title] = np.asarray(image.get_array())
    untrained = {"original", "PI", "YaRN", "DPRoPE (the paper's n̂)"}
    for factor in (2, 4):
        for state, methods in (
            ("without training", untrained),
            ("fine-tuned", untrained | {"CLEX"}),
        ):
            title = f"{state}, s = {factor}"
            assert {label for of, label in drawn if of == title} == methods
    assert len(colours) == 5
    assert list(maps) == ["original", "PI", "YaRN", "CLEX", "DPRoPE (n̂ = 40)"]

    tuned = [run for run in results.records("passkey") if run.training]
    runs = [of.scores for of in tuned if (of.run["method"], of.run["factor"]) == ("yarn", 2)]
    assert len(runs) > 1
    shares = [[row["mean"] for row in of["by_length"]] for of in runs]
    assert drawn["fine-tuned, s = 2", "YaRN"] == pytest.approx(np.mean(shares, axis=0))
    by_depth = pd.concat(pd.DataFrame(of["by_depth"]) for of in runs)
    means = by_depth.pivot_table("mean", "depth", "length")
    assert maps["YaRN"] == pytest.approx(means.to_numpy())


def test_passkeys_of_other_prompts_stand_at_their_own_lengths_and_depths(recorder):
    """The model as it is was asked fewer depths, and at another length, than its fine-tune."""
    asked = {
        "original": ((8192, 0.0, 1.0), (8192, 1.0, 0.5)),
        "yarn": ((16384, 0.0, 0.75), (16384, 0.5, 0.25), (16384, 1.0, 0.5)),
    }
    for (method, cells), seed, keys in zip(asked.items(), (None, 1), (3, 20)):
        by_depth = [
            {"length": length, "depth": depth, "mean": mean, "low": 0, "high": 1, "n": keys}
            for length, depth, mean in cells
        ]
        scores = {"by_length": by_depth[:1], "by_depth": by_depth}
        recorder.add("passkey", method, scores, seed=seed)
    figure = draw.figure("passkey", recorder.results())
    panel, *maps = (axes for axes in figure.axes if axes.get_title("left"))
    assert [label.get_text() for label in panel.get_xticklabels()] == ["8k = L", "16k = L′"]
    points = {bars.get_label(): round(bars[0].get_xdata()[0]) for bars in panel.containers}
    assert points == {"original": 0, "YaRN": 1}
    depths = [label.get_text() for label in maps[0].get_yticklabels()]
    assert depths == ["0", "0.5", "1"]
    for axes, cells in zip(maps, asked.values(), strict=True):
        shown = np.ma.filled(axes.images[0].get_array(), np.nan)
        expected = np.full((3, 2), np.nan)
        for length, depth, mean in cells:
            expected[int(2 * depth), length // 16384] = mean
        assert np.array_equal(shown, expected, equal_nan=True)
    note = " ".join(text.get_text() for text in figure.texts)
    assert "3 to 20 prompts" in note and "blank" in note


def add_passkeys(recorder, method, factor=2, seed=None, length=16384, **options):
    scores = of_passkeys({length: 0.5}, 2)
    asked = {"comparable": ["lengths"], "lengths": [length]}
    recorder.add("passkey", method, scores, factor, options, seed, **asked)


def test_passkeys_by_depth_are_of_a_factor_that_was_fine_tuned(recorder):
    add_passkeys(recorder, "original")
    add_passkeys(recorder, "pi", factor=2)
    add_passkeys(recorder, "pi", factor=4, seed=0)
    figure = draw.figure("passkey", recorder.results())
    maps = [axes.get_title("left") for axes in figure.axes if axes.images]
    assert maps == ["original", "PI"]
    assert "fine-tuned, s = 4" in figure.subfigs[1].get_suptitle()


def test_passkeys_of_each_factor_stand_at_the_lengths_that_it_was_asked(recorder):
    for factor in (2, 4):
        for method in ("original", "pi", "yarn")[: 4 - factor // 2]:
            add_passkeys(recorder, method, factor, length=factor * 8192)
    figure = draw.figure("passkey", recorder.results())
    drawn = {
        axes.get_title("left"): [
            [label.get_text() for label in axes.get_xticklabels()],
            [bars.get_label() for bars in axes.containers],
        ]
        for axes in figure.axes
        if axes.containers
    }
    assert drawn == {
        "without training, s = 2": [["16k = L′"], ["original", "PI", "YaRN"]],
        "without training, s = 4": [["32k = L′"], ["original", "PI"]],
    }


def test_of_an_own_methods_many_settings_as_many_are_drawn_as_can_be_told_apart(
    recorder, monkeypatch
):
    mine = dataclasses.replace(rope.METHODS["pi"], name="mine", title="Mine", published=False)
    monkeypatch.setitem(rope.METHODS, "mine", mine)
    for strength in range(7):
        add_passkeys(recorder, "mine", strength=strength)
    add_passkeys(recorder, "pi")
    add_passkeys(recorder, "clex", seed=0)
    figure = draw.figure("passkey", recorder.results())
    names = [text.get_text() for text in figure.subfigs[0].legends[0].get_texts()]
    assert len(names) == style.MOST and {"PI", "CLEX"} < {*names}
