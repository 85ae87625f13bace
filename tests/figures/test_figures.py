"""Figures draw the records' numbers, and the same records give the same bytes."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.image import imread

from analysis.rendering import INPUTS, sources
from analysis.results import NotMeasured, Results, every
from analysis.settings import Setting
from core import rope
from core.angles import angle_distribution
from core.disturbance import disturbance as kl
from core.geometry import RopeGeometry
from experiments.kit.records import ROOT
from figures import angle_distribution as figure_1
from figures import disturbance, disturbance_longbench_e, disturbance_strategies, frequency, passkey
from figures.kit import command
from tests.analysis.made import Made, score
from tests.figures.test_style import check

LLAMA2 = RopeGeometry(128, 10000.0, 4096)


def of(model: str) -> Results:
    return Results.of(model)


def test_the_committed_figures_are_those_that_records_give():
    """Which there are; each figure is there of some model."""
    shown = set()
    for results in every():
        names = [name for name in command.names() if drawn(name, results)]
        folder = ROOT / "figures" / results.model.name
        committed = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
        assert committed == {
            INPUTS,
            *(f"{command.place(name)}.{suffix}" for name in names for suffix in ("pdf", "png")),
        }
        shown.update(names)
    assert shown == set(command.names())


@pytest.mark.parametrize(
    ("model", "name"),
    [("llama2-7b", "angle_distribution"), ("smollm2", "passkey"), ("tiny", "disturbance_longbench_e")],
)
def test_a_committed_picture_is_what_the_records_give(model, name, tmp_path):
    """Bytes differ between processors in their last digits, so pixels are compared."""
    picture = tmp_path / f"{name}.png"
    assert picture in command.write(name, of(model), tmp_path).files
    now, committed = imread(picture), imread(ROOT / "figures" / model / picture.name)
    assert now.shape == committed.shape and (np.abs(now - committed).max(axis=-1) > 0.1).mean() < 1e-4


def test_a_figure_depends_on_all_that_draws_it():
    """Colours are registered with the methods; some figures hold the paper's numbers."""
    files = {file for folder, pattern in sources("figures") for file in folder.rglob(pattern)}
    assert {ROOT / "core/methods/dprope.py", ROOT / "figures/kit/style.py", ROOT / "results/paper/ruler.csv"} <= files


def test_same_records_same_bytes(tmp_path):
    first, second = (command.write("disturbance", of("smollm2"), tmp_path / run).files for run in ("a", "b"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes() and one.stat().st_size > 5000


@pytest.mark.parametrize("name", command.names())
def test_a_model_without_records_has_no_figure(name, tmp_path):
    with pytest.raises(NotMeasured):
        command.build(name, Made(tmp_path).results())


def drawn(name: str, results: Results) -> bool:
    try:
        plt.close(command.build(name, results))
    except NotMeasured:
        return False
    return True


def test_frequency_shows_the_first_24_intervals_of_pairs_6_and_22():
    axes = frequency.build(of("llama2-7b")).axes
    for panel, pair in zip(axes, (6, 22)):
        heights = np.array([[bar.get_height() for bar in bars] for bars in panel.containers])
        theta = LLAMA2.inv_freq[[pair]]
        expected = [
            angle_distribution(theta, 4096)[0],
            angle_distribution(theta / 2, 8192)[0],
            angle_distribution(theta, 8192)[0],
        ]
        assert heights == pytest.approx(100 * np.array(expected)[:, :24])


def test_figure_1_shows_a_pair_for_either_strategy_and_another_models_where_it_has_neither(tmp_path):
    panels = figure_1.build(of("llama2-7b")).axes
    wavelengths = [f"{LLAMA2.wavelength[pair]:,.0f}" for pair in (22, 50)]
    assert all(length in axes.get_title("left") for axes, length in zip(panels, wavelengths, strict=True))
    counts = {name: [2, 1, 1] for name in ("pretrained", "interpolated", "extrapolated")}
    made = Made(tmp_path)
    fields = {"intervals": 3, "pairs": [3]}
    made.add("angle_distribution", None, [{"pair": 3, "wavelength": 50.0} | counts], **fields)
    (panel,) = figure_1.build(made.results()).axes
    assert panel.get_title("left").startswith("(a) pair 3")
    (panel,) = frequency.build(made.results()).axes
    assert [bar.get_height() for bar in panel.containers[0]] == [50, 25, 25]


@pytest.mark.parametrize("module", [disturbance, disturbance_strategies])
def test_disturbance_panels(module):
    figure = module.build(of("llama2-7b"))
    assert len(figure.axes) == 2
    records = [record for record in of("llama2-7b").records("disturbance") if not record["options"]]
    for axes, factor in zip(figure.axes, (2, 4), strict=True):
        recorded = {
            record["method"]: np.maximum(row["per_pair"], 1e-5)
            for record in records
            for row in record["scores"]
            if (record["factor"], row["precision"], row["convention"]) == (factor, "float64", "released")
        }
        lines = {line.get_label(): np.array(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) == 64}
        if module is disturbance:
            assert len(lines) == 3
            assert (lines["DPRoPE (t = 0)"] == recorded["dprope"]).all() and (lines["PI"] == recorded["pi"]).all()
        else:  # past λ > L, extrapolation costs hundreds of times more
            assert len(lines) == 2
            assert (lines["extrapolation"][50:] > 100 * lines["interpolation"][50:]).all()


def test_a_method_registered_later_is_drawn_pair_by_pair_and_an_unregistered_one_is_not(tmp_path, monkeypatch):
    made = Made(tmp_path)
    for method in ("pi", "ntk", "yarn", "dprope", "brand-new", "styled"):
        made.add("disturbance", method, [{"precision": "float64", "convention": "released", "per_pair": [0.1] * 32}])
    styled = rope.Method("styled", "Styled", lambda geometry, factor: None, styles=(("#123456", "-"),))
    monkeypatch.setitem(rope.METHODS, "styled", styled)
    (axes,) = disturbance.build(made.results()).axes
    lines = {line.get_label(): line.get_color() for line in axes.lines if len(line.get_ydata()) == 32}
    assert lines.keys() == {"PI", "YaRN", "DPRoPE (t = 0)", "Styled"}
    assert lines["Styled"] == "#123456"
    monkeypatch.delitem(rope.METHODS, "styled")
    made.records = {file: record for file, record in made.records.items() if record["method"] == "styled"}
    with pytest.raises(NotMeasured, match="registered"):
        disturbance.build(made.results())


def moved(geometry, **options):
    before = angle_distribution(geometry.inv_freq, geometry.context_length)
    after = rope.scale(geometry, options.pop("method", "dprope"), 2, **options).inv_freq
    return 1e3 * kl(angle_distribution(after, 2 * geometry.context_length), before).mean()


def points(axes):
    return {float(bars[0].get_xdata()[0]): float(bars[0].get_ydata()[0]) for bars in axes.containers}


def test_scores_stand_over_disturbances_the_papers_beside_ours():
    results = of("tiny")
    paper, ours, paper_methods, our_methods = disturbance_longbench_e.build(results).axes

    lines = (ROOT / "results/paper/n_hat_longbench_e.csv").read_text().splitlines()[1:]
    printed = {int(n): float(value) for n, metric, value, _ in (line.split(",") for line in lines) if metric == "Avg."}
    assert len(printed) == 6
    expected = {moved(LLAMA2, n_hat=n): value for n, value in printed.items()}
    assert sorted(points(paper)) == pytest.approx(sorted(expected), rel=1e-6)
    assert [value for _, value in sorted(points(paper).items())] == [value for _, value in sorted(expected.items())]
    assert {text.get_text() for text in paper.texts} == {str(n) for n in printed}
    below = dict(sorted(points(paper_methods).items())[-2:])  # PI and YaRN of the paper's Table 1, 13B at s = 2
    assert list(below.values()) == [30.71, 30.50] and list(below) == pytest.approx(
        [moved(LLAMA2, method="pi"), moved(LLAMA2, method="yarn")], rel=1e-3
    )

    runs = [run for run in results.records("longbench_e") if run.get("training", {}).get("seed") == 0]
    runs = [run for run in runs if run["factor"] == 2 and run["method"] != "clex" and "intervals" not in run["options"]]
    means = {
        moved(results.model.geometry, method=run["method"], **run["options"]): run["scores"]["averages"]["Avg."]["mean"]
        for run in runs
    }
    assert sorted(points(our_methods)) == pytest.approx(sorted(means), rel=1e-6)
    assert [y for _, y in sorted(points(our_methods).items())] == pytest.approx([y for _, y in sorted(means.items())])
    assert {text.get_text() for text in our_methods.texts} == {"PI", "YaRN", "DPRoPE (t = 0)", "DPRoPE (n̂)"}
    assert len(points(ours)) == sum("n_hat" in run["options"] for run in runs) > 5


@pytest.mark.parametrize("model", ["smollm2", "tiny"])
def test_passkey_draws_the_recorded_accuracies_in_panels_of_five(model):
    results = of(model)
    figure = passkey.build(results)
    papers, varied = [{"n_hat": n_hat} for n_hat in results.model.n_hat.values()], {*results.model.ablated, "file"}
    listed = [run for run in results.records("passkey") if run["options"] in papers or not varied & {*run["options"]}]
    compared = [run for run in listed if run["method"]]
    drawn, state = {}, ""
    for axes in [axes for axes in figure.axes if axes.containers]:
        state = axes.get_title(loc="left") or state
        for bars in axes.containers:
            drawn[state, bars.get_label()] = list(bars[0].get_ydata())
            lengths = [row["length"] / 1024 for row in compared[0]["scores"]["by_length"]]
            # Side by side around their length, so that intervals do not hide each other.
            assert bars[0].get_xdata() == pytest.approx(lengths, abs=0.03 * max(lengths))
        check([[bars[0].get_color() for bars in axes.containers]])
    expected = {}
    state = {False: "without training", True: "fine-tuned"}
    titles = {f"{state['training' in run]}, s = {run['factor']:g}" for run in compared if run["method"] != "original"}
    for run in compared:
        shares = [row["mean"] for row in run["scores"]["by_length"]]
        own = [f"{state['training' in run]}, s = {run['factor']:g}"]
        for title in titles if run["method"] == "original" else own:
            expected.setdefault((title, Setting.of(run).name), []).append(shares)
    assert drawn.keys() == expected.keys()
    for key, seeds in expected.items():
        assert drawn[key] == pytest.approx(np.mean(seeds, axis=0))


def test_passkey_maps_have_the_recorded_cells():
    results = of("smollm2")
    figure = passkey.build(results)
    found = {(run["method"], "training" in run): run for run in results.records("passkey") if not run["options"]}
    heat = {axes.get_title(loc="left"): axes.images[0].get_array() for axes in figure.axes if axes.images}
    original = found["original", False]
    shown = {"original": original, "CLEX, s = 2": found["clex", True], "YaRN, s = 2": found["yarn", True]}
    for title, run in shown.items():
        cells = {(cell["depth"], cell["length"]): cell["mean"] for cell in run["scores"]["by_depth"]}
        assert heat[title].tolist() == [[cells[d, n] for n in original["lengths"]] for d in original["depths"]]


def passkeys(made: Made, method, mean, factor=2, **fields):
    by_length = [{"length": n} | score(mean, 0.0, 4) for n in (8192, 16384)]
    by_depth = [{"length": n, "depth": d} | score(mean, 0.0, 2) for n in (8192, 16384) for d in (0.0, 1.0)]
    made.add("passkey", method, {"by_length": by_length, "by_depth": by_depth}, factor=factor, **fields)


def test_passkey_of_a_model_as_it_is_and_of_a_method_that_is_not_registered(tmp_path):
    made = Made(tmp_path)
    passkeys(made, None, 0.5, factor=1.0)
    figure = passkey.build(made.results())
    assert [list(bars[0].get_ydata()) for bars in figure.axes[0].containers] == [[0.5, 0.5]]
    assert sum(line.get_linestyle() == ":" for line in figure.axes[0].lines) == 1  # L, and no L'
    passkeys(made, "never-heard-of", 0.75, options={"strength": 3})
    panels = passkey.build(made.results()).axes
    drawn = {bars.get_label(): list(bars[0].get_ydata()) for axes in panels for bars in axes.containers}
    assert drawn == {"as it is": [0.5, 0.5], "never-heard-of (strength = 3)": [0.75, 0.75]}


def test_a_figure_that_is_asked_for_says_what_it_shows_before_its_paths(monkeypatch, capsys, tmp_path):
    made = Made(tmp_path)
    passkeys(made, "pi", 0.5)
    monkeypatch.setattr(sys, "argv", ["figures", "passkey", "--results", str(made.results().folder)])
    command.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("A Model, Figure 4") and lines[-1].endswith("figures/mine/passkey.png")
