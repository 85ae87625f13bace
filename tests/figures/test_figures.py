"""Figures draw the records' numbers, and the same records give the same bytes."""

import itertools
from dataclasses import replace

import matplotlib.colors
import matplotlib.pyplot as plt
import numpy as np
import pytest

from analysis.beyond import learned
from analysis.beyond import loss_by_position as losses
from analysis.beyond import whole_texts as windows
from analysis.comparison import in_comparison
from analysis.rendering import INPUTS
from analysis.results import NotMeasured, Results, every
from analysis.settings import Setting
from core import rope
from core.angles import angle_distribution
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments import base_models
from figures import angle_distribution as figure_1
from figures import disturbance, disturbance_strategies, frequency, interpolation, passkey
from figures.beyond import loss_by_position, whole_texts
from figures.kit import command, style
from tests.analysis.made import Made, score

LLAMA2 = RopeGeometry(128, 10000.0, 4096)


def of(model: str) -> Results:
    return Results.of(model)


@pytest.mark.parametrize("name", command.names())
def test_every_figure_is_drawn_of_some_scale(name):
    assert any(drawn(name, results) for results in every())


@pytest.mark.parametrize("name", ["angle_distribution", "disturbance_longbench_e"])
def test_same_records_same_bytes(name, tmp_path):
    results = next(results for results in every() if drawn(name, results))
    first, second = (command.write(name, results, tmp_path / run) for run in ("a", "b"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes() and one.stat().st_size > 5000
    assert [file.name for file in first] == [f"{name}.pdf", f"{name}.png"]


@pytest.mark.parametrize("name", command.names())
def test_a_scale_without_records_has_no_figure(name, tmp_path):
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
    for axes, run in zip(figure.axes, of("llama2-7b").records("disturbance"), strict=True):
        recorded = {
            row["method"]: np.maximum(row["per_pair"], 1e-5)
            for row in run["scores"]
            if (row["precision"], row["convention"]) == ("float64", "released") and not row["options"]
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
    way = {"precision": "float64", "convention": "released", "options": {}, "per_pair": [0.1] * 32}
    methods = ["pi", "ntk", "yarn", "dprope", "brand-new", "styled"]
    made.add("disturbance", None, [way | {"method": method} for method in methods])
    styled = rope.Method("styled", "Styled", lambda geometry, factor: None, styles=(("#123456", "-"),))
    monkeypatch.setitem(rope.METHODS, "styled", styled)
    (axes,) = disturbance.build(made.results()).axes
    lines = {line.get_label(): line.get_color() for line in axes.lines if len(line.get_ydata()) == 32}
    assert lines.keys() == {"PI", "YaRN", "DPRoPE (t = 0)", "Styled"}
    assert lines["Styled"] == "#123456"


def test_extension_draws_one_line_per_method_and_marks_the_training_length():
    results = of("smollm2")
    listed = in_comparison(results.model)
    found = [rows for factor in losses.measured_factors(results) for rows in losses.parts(results, factor)]
    parts = [rows.only(lambda row: listed(row) and not learned.start_of(row.setting)) for rows in found]
    shown = {}
    for axes in loss_by_position.build(results).axes:
        own = shown.setdefault(axes.get_title(loc="left"), {})
        own |= {line.get_label(): list(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) > 2}
        assert any(list(line.get_xdata()) == [8, 8] for line in axes.lines) or not axes.get_visible()
    for part in parts:
        state = "fine-tuned" if part.rows[0].trained else "without training"
        loss = {row.setting: np.array([bucket["mean"] for bucket in row.first["buckets"]]) for row in part.rows}
        rival = loss[losses.reference(part).setting]
        drawn = shown[f"{state}, s = {float(part.first['factor']):g}"]
        assert drawn.keys() == {setting.name for setting in loss}
        for setting, values in loss.items():
            above = rope.METHODS[setting.method].published or setting.method in (
                "original",
                "ntk",
                "dprope-significant",
            )
            expected = values if above and setting.plain("n_hat") else values - rival
            assert drawn[setting.name] == pytest.approx(expected)


def test_whole_texts_draw_the_difference_to_the_rival_window_by_window():
    results = of("smollm2")
    panels = whole_texts.build(results).axes
    rows = windows.runs(results, False, 2.0)
    rival, own = rows.find("yarn", {}), rows.find("pi", {})
    (line,) = [line for line in panels[1].lines if line.get_label() == "PI"]
    gaps = np.nanmean(windows.losses(own.first) - windows.losses(rival.first), axis=0)
    assert line.get_ydata() == pytest.approx(gaps)


def test_the_illustration_marks_unseen_positions_and_angles():
    upper, lower = interpolation.build(of("llama2-7b")).axes
    count = {line.get_label(): len(line.get_xdata()) for line in (*upper.lines, *lower.lines)}
    assert count["unseen position"] == count["unseen angle"] == count["pre-trained"] == 12


def test_passkey_draws_the_recorded_accuracies():
    results = of("smollm2")
    figure, preset = passkey.build(results), base_models.get("smollm2")
    found = {(run["method"], str(run["options"]), "training" in run): run for run in results.records("passkey")}
    original = found["original", "{}", False]
    for axes, trained in zip(figure.axes, (False, True)):
        names = {(method, str(options)) for method, options in preset.comparison(2)} | {("clex", "{}")}
        runs = [found[*name, trained] for name in names if (*name, trained) in found and name[0] != "original"]
        runs.append(original)
        assert len(runs) == 7
        expected = {Setting.of(run).name: [row["mean"] for row in run["scores"]["by_length"]] for run in runs}
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
    drawn = {bars.get_label(): list(bars[0].get_ydata()) for bars in passkey.build(made.results()).axes[0].containers}
    assert drawn == {"as it is": [0.5, 0.5], "never-heard-of (strength = 3)": [0.75, 0.75]}


def test_passkey_without_the_comparison_says_so(tmp_path):
    made = Made(tmp_path)
    passkeys(made, "dprope", 0.5, options={"n_hat": 12})  # an ablation's, as the model's n̂ is 28
    with pytest.raises(NotMeasured, match="comparison"):
        passkey.build(made.results())


def test_unknown_figures_are_refused():
    with pytest.raises(InputError, match="passkey"):
        command.build("nothing", of("tiny"))


REGISTERED = [Setting(name) for name in rope.METHODS]


def test_registered_methods_look_as_they_always_did():
    settings = [*REGISTERED, Setting("dprope", (("n_hat", 20),), 2.0), Setting("dprope", (("n_hat", 18),), 4.0)]
    drawn = style.styles(settings)
    assert drawn[Setting("pi")] == ("#E69F00", "--") and drawn[Setting("yarn")] == ("#0072B2", "-.")
    by_hand = {drawn[setting] for setting in settings[-2:]}
    assert by_hand == {("#56B4E9", (0, (4, 1)))}
    alone = style.styles([Setting("clex")])
    assert alone[Setting("clex")] == drawn[Setting("clex")]


def test_eight_further_methods_and_their_variants_are_told_apart(monkeypatch):
    for index in range(8):
        new = replace(rope.METHODS["pi"], name=f"new-{index}", styles=())
        monkeypatch.setitem(rope.METHODS, new.name, new)
    settings = [Setting(name) for name in rope.METHODS] + [Setting("dprope", (("n_hat", 20),))]
    settings += [Setting("new-0", (("strength", value),)) for value in range(8)]
    drawn = style.styles(settings)
    assert len(set(drawn.values())) == len(settings)
    for (one, dash), (other, other_dash) in itertools.combinations(drawn.values(), 2):
        assert unlike(dash, other_dash) or distance(one, other) > 20, (one, dash, other, other_dash)


def test_more_settings_than_styles_are_drawn_all_the_same():
    settings = [Setting(f"new-{index}") for index in range(50)]
    assert style.styles(settings).keys() == set(settings)
    assert style.styles(settings) == style.styles(reversed(settings))


def unlike(one, other) -> bool:
    """Whether two line styles differ in their number of dashes, or by a quarter in their period or share of ink."""
    named = {"-": (1, 0, 0), "--": (3.7, 1.6), "-.": (6.4, 1.6, 1, 1.6)}  # matplotlib's, in line widths
    first, second = (np.array(named[dash] if isinstance(dash, str) else dash[1]) for dash in (one, other))
    measures = [(pattern.sum(), pattern[::2].sum() / pattern.sum()) for pattern in (first, second)]
    return len(first) != len(second) or any(max(pair) > 1.25 * min(pair) for pair in zip(*measures))


# What remains of linear RGB to all, to the green-blind and to the red-blind (Machado et al. 2009).
EYES = (
    np.eye(3),
    np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
)


def distance(one: str, other: str) -> float:
    """ΔE of CIE 1976 to the eyes that see least of it; 2.3 is just noticeable."""
    return min(float(np.linalg.norm(lab(one, eyes) - lab(other, eyes))) for eyes in EYES)


def lab(colour: str, eyes: np.ndarray) -> np.ndarray:
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.clip(eyes @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1)
    xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]] @ linear
    ratio = xyz / [0.9505, 1.0, 1.089]
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("results", every(), ids=lambda results: results.model.name)
def test_the_committed_figures_are_those_that_records_give(results):
    """Bytes differ between processors in their last digits, so what is compared is which files there are."""
    folder = results.folder.parent / "figures" / results.model.name
    expected = {f"{name}.{suffix}" for name in command.names() if drawn(name, results) for suffix in ("pdf", "png")}
    assert {file.name for file in folder.iterdir()} == {*expected, INPUTS}
