"""Figures draw the records' numbers, and the same records give the same bytes."""

import itertools

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text

from analysis import drawing
from analysis.results import Results, every
from core import rope
from core.angles import angle_distribution
from core.disturbance import disturbance as kl
from core.geometry import RopeGeometry
from experiments.kit.records import ROOT
from figures import angle_distribution as figure_1
from figures import disturbance, disturbance_longbench_e, disturbance_strategies, frequency, passkey
from figures.kit import image
from figures.kit.draw import figure
from tests.figures.test_style import check

LLAMA2 = RopeGeometry(128, 10000.0, 4096)


def test_every_figure_is_committed():
    """Each figure is there of some model, in both formats, and no other file."""
    shown = set()
    for results in every():
        folder = ROOT / "figures" / results.model.name
        places = [drawing.place("figures", name, results) for name in drawing.modules("figures")]
        paths = {str(place.relative_to(folder)) for place in places}
        committed = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
        own = {path for path in paths if f"{path}.pdf" in committed}
        assert committed == {f"{path}.{suffix}" for path in own for suffix in ("pdf", "png")}
        shown |= own
    assert shown == paths


def test_a_committed_picture_is_what_the_records_give(tmp_path):
    """Without a date; pixels are compared, as another processor gives other last digits."""
    name = "angle_distribution"
    pdf, png = image.save(figure(name, Results.of("llama2-7b")), tmp_path / name)
    assert b"CreationDate" not in pdf.read_bytes()
    now = imread(png)
    committed = imread(ROOT / "figures" / "llama2-7b" / f"{name}.png")
    assert (
        now.shape == committed.shape and (np.abs(now - committed).max(axis=-1) > 0.1).mean() < 1e-4
    )


def test_figures_1_and_3_show_the_papers_pairs_under_both_strategies():
    titles = [axes.get_title("left") for axes in figure_1.build(Results.of("llama2-7b")).axes]
    assert all(
        f"{LLAMA2.wavelength[pair]:,.0f}" in title
        for pair, title in zip((22, 50), titles, strict=True)
    )
    for panel, pair in zip(frequency.build(Results.of("llama2-7b")).axes, (6, 22)):
        heights = np.array([[bar.get_height() for bar in bars] for bars in panel.containers])
        theta = LLAMA2.inv_freq[[pair]]
        angles = [(theta, 4096), (theta / 2, 8192), (theta, 8192)]
        expected = 100 * np.array([angle_distribution(*each)[0] for each in angles])
        assert heights == pytest.approx(expected[:, :24])


def test_disturbance_is_drawn_pair_by_pair_at_each_factor_of_the_model():
    pretrained = angle_distribution(LLAMA2.inv_freq, 4096)
    for module, name in ((disturbance, "PI"), (disturbance_strategies, "interpolation")):
        panels = module.build(Results.of("llama2-7b")).axes
        for axes, factor in zip(panels, (2, 4), strict=True):
            lines = {line.get_label(): line for line in axes.lines if len(line.get_ydata()) == 64}
            expected = kl(angle_distribution(LLAMA2.inv_freq / factor, 4096 * factor), pretrained)
            assert lines[name].get_ydata() == pytest.approx(np.maximum(expected, 1e-5))
            if module is disturbance:
                assert lines.keys() == {"PI", "YaRN", "DPRoPE (t = 0)"}
            else:  # past λ > L, extrapolation costs hundreds of times more
                assert (
                    lines["extrapolation"].get_ydata()[50:]
                    > 100 * lines["interpolation"].get_ydata()[50:]
                ).all()


def average(geometry, method="dprope", **options):
    pretrained = angle_distribution(geometry.inv_freq, geometry.context_length)
    inv_freq = rope.scale(geometry, method, 2, **options).inv_freq
    return 1e3 * kl(angle_distribution(inv_freq, 2 * geometry.context_length), pretrained).mean()


def points(axes):
    return sorted(
        (float(bars[0].get_xdata()[0]), float(bars[0].get_ydata()[0])) for bars in axes.containers
    )


def test_scores_stand_over_disturbances_the_papers_beside_ours():
    results = Results.of("tiny")
    paper, ours, paper_methods, our_methods = disturbance_longbench_e.build(results).axes

    lines = (ROOT / "results/paper/n_hat_longbench_e.csv").read_text().splitlines()[1:]
    printed = {
        int(n): float(value)
        for n, metric, value, _ in (line.split(",") for line in lines)
        if metric == "Avg."
    }
    expected = sorted((average(LLAMA2, n_hat=n), value) for n, value in printed.items())
    assert (
        np.array(points(paper)) == pytest.approx(np.array(expected), rel=1e-6)
        and len(expected) == 6
    )
    assert {text.get_text() for text in paper.texts} == {str(n) for n in printed}
    methods = [
        (average(LLAMA2, "pi"), 30.71),
        (average(LLAMA2, "yarn"), 30.50),
    ]  # of the paper's Table 1, 13B at s = 2
    assert np.array(points(paper_methods)[-2:]) == pytest.approx(np.array(methods), rel=1e-3)

    runs = [record for record in results.records("longbench_e") if record.seed == 0]
    runs = [
        run
        for run in runs
        if run.run["factor"] == 2
        and run.run["method"] != "clex"
        and "intervals" not in run.run["options"]
    ]
    expected = sorted(
        (
            average(results.model.geometry, run.run["method"], **run.run["options"]),
            run.scores["averages"]["Avg."]["mean"],
        )
        for run in runs
    )
    assert np.array(points(our_methods)) == pytest.approx(np.array(expected), rel=1e-6)
    assert {text.get_text() for text in our_methods.texts} == {
        "PI",
        "YaRN",
        "DPRoPE (t = 0)",
        "DPRoPE (n̂)",
    }
    assert len(points(ours)) == sum("n_hat" in run.run["options"] for run in runs) > 5


def test_passkey_draws_the_recorded_shares_of_the_papers_methods_each_in_one_colour():
    """A panel for each state and factor; the maps show the recorded cells."""
    results = Results.of("tiny")
    figure = passkey.build(results)
    runs = results.records("passkey")
    drawn = {}
    colours = {}
    for axes in [axes for axes in figure.axes if axes.containers]:
        for bars in axes.containers:
            drawn[axes.get_title(loc="left"), bars.get_label()] = list(bars[0].get_ydata())
            colours.setdefault(bars.get_label(), set()).add(bars[0].get_color())
    names = {"original": "original", "pi": "PI", "yarn": "YaRN", "clex": "CLEX"}
    factors = (2, 4)
    states = {False: "without training", True: "fine-tuned"}
    expected = {}
    for run in runs:
        n_hat = {"n_hat": {2: 40, 4: 32}[run.run["factor"]]}
        label = names.get(run.run["method"])
        if run.run["method"] == "dprope" and run.run["options"] == n_hat:
            label = "DPRoPE (the paper's n̂)"
        if not label or run.run["options"].keys() - {"weights", "n_hat"}:
            continue
        everywhere = [(state, factor) for state in states for factor in factors]
        own = [(bool(run.training), run.run["factor"])]
        for trained, factor in everywhere if label == "original" else own:
            shares = [row["mean"] for row in run.scores["by_length"]]
            title = f"{states[trained]}, s = {factor:g}"
            expected.setdefault((title, label), []).append(shares)
    assert drawn == {key: pytest.approx(np.mean(seeds, axis=0)) for key, seeds in expected.items()}
    assert len(drawn) == 18 and all(len(used) == 1 for used in colours.values())
    check([[colour for used in colours.values() for colour in used]])

    heat = {
        axes.get_title("left"): axes.images[0].get_array() for axes in figure.axes if axes.images
    }
    tuned = [
        {(cell["depth"], cell["length"]): cell["mean"] for cell in run.scores["by_depth"]}
        for run in runs
        if (run.run["method"], run.run["factor"], bool(run.training)) == ("yarn", 2, True)
    ]
    lengths = runs[0].run["lengths"]
    depths = runs[0].run["depths"]
    mean = [[np.mean([cells[depth, n] for cells in tuned]) for n in lengths] for depth in depths]
    assert list(heat) == ["original", "PI", "YaRN", "CLEX", "DPRoPE (n̂ = 40)"]
    assert np.asarray(heat["YaRN"]) == pytest.approx(np.array(mean))


def test_no_two_names_of_the_passkey_figure_meet():
    figure = passkey.build(Results.of("tiny"))
    figure.draw_without_rendering()
    shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    boxes = [text.get_window_extent() for text in shown]
    legend = [box for box, text in zip(boxes, shown) if text.get_text() in ("original", "PI")]
    assert len(shown) > 50 and len(legend) == 4  # each in the legend and above a map
    for (one, first), (other, second) in itertools.combinations(zip(shown, boxes), 2):
        assert not first.padded(-0.5).overlaps(second.padded(-0.5)), (one, other)
