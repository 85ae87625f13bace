"""What the page of SmolLM2-135M says is what the records hold."""

import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from core.rope import scale
from eval.intervals import accuracy_interval, mean_interval, mean_of_means
from experiments import records, scales
from experiments.plan import Plan
from experiments.records import RESULTS
from tables import common, ruler
from tables.extension import disturbances, factors, fine_tuned, paired_difference, same_text
from tests.readme import cell, name_of, page, signed
from tests.results.smollm2 import cost_within, keys_found, measured, points

PAGE, PROSE = page("results/smollm2/README.md")

CLEX = "clex_s=2_seed=0"  # its records
NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def extension_rows(factor: float) -> list[str]:
    """The lines of a table of SmolLM2 extended without training: every setting on the comparison's text."""
    runs = same_text(RESULTS, "smollm2", factor)
    averages = disturbances(RESULTS, "smollm2", runs)
    return [
        f"| {' | '.join([name, f'{1e3 * average:.2f}', *cells])} |"
        for average, (name, *cells) in zip(averages, loss_cells(runs))
    ]


def fine_tuned_rows() -> list[str]:
    """The lines of the table of the same, fine-tuned; last, what beyond L it differs by from the same untrained."""
    untrained = same_text(RESULTS, "smollm2")
    runs, lines = fine_tuned(RESULTS, "smollm2", untrained[0]), []
    for run, cells in zip(runs, loss_cells(runs)):
        same = [other for other in untrained if (other["method"], other["options"]) == (run["method"], run["options"])]
        lines.append(f"| {' | '.join([*cells, signed(paired_difference(run, *same, 64)) if same else '–'])} |")
    return lines


def loss_cells(runs: list[dict]) -> list[list[str]]:
    """Each run's name, losses by range (the least of them bold) and difference to the YaRN among them."""
    (yarn,) = [run for run in runs if (run["method"], run["options"]) == ("yarn", {})]
    best = [min(run["ranges"][i]["mean"] for run in runs) for i in range(3)]
    lines = []
    for run in runs:
        cells = [name_of(run)]
        for score, least in zip(run["ranges"], best):
            mean = f"**{score['mean']:.3f}**" if score["mean"] == least else f"{score['mean']:.3f}"
            cells.append(f"{mean} [{score['low']:.3f}, {score['high']:.3f}]")
        lines.append([*cells, "–" if run is yarn else signed(paired_difference(run, yarn, 64))])
    return lines


@pytest.mark.parametrize("factor", factors(RESULTS, "smollm2"))
def test_extension_tables(factor):
    assert set(extension_rows(factor)) <= set(PAGE.splitlines())


def test_four_times_the_length():
    runs = {name_of(run): run for run in same_text(RESULTS, "smollm2", 4)}
    above = {name: signed(paired_difference(run, runs["YaRN"], 64)) for name, run in runs.items()}
    said = f"`dprope-significant` {above['DPRoPE, significant']}, t = 0 {above['DPRoPE, t = 0']}."
    assert said in page("README.md")[1]
    nearer = {name_of(run): run for run in same_text(RESULTS, "smollm2", 2)}
    for name, at_two in (
        *((name, name) for name in ("PI", "DPRoPE, t = 0", "DPRoPE, significant")),
        ("DPRoPE, n̂ = 26", "DPRoPE, n̂ = 28"),
    ):
        far, near = (paired_difference(own[which], own["YaRN"], 64) for own, which in ((runs, name), (nearer, at_two)))
        assert far["mean"] > 2 * near["mean"]
    ntk, yarn = ([score["mean"] for score in runs[name]["ranges"]] for name in ("NTK-aware", "YaRN"))
    beyond = paired_difference(runs["NTK-aware"], runs["YaRN"], 64)
    assert ntk[0] < yarn[0] and ntk[1] < yarn[1] and ntk[2] > yarn[2] and beyond["low"] < 0 < beyond["high"]
    minutes = [round(run["seconds"] / 60) for run in runs.values()]
    assert f"{min(minutes)} to {max(minutes)} minutes of one core a method; columns as in the first" in PROSE
    by_bucket = {name: [bucket["mean"] for bucket in run["buckets"]] for name, run in runs.items()}
    original = by_bucket.pop("original")
    least = [own < min(others) for own, *others in zip(original, *by_bucket.values())]
    assert least == [position < 10 for position in range(32)]
    assert [own > pi for own, pi in zip(original, by_bucket["PI"])] == [position >= 13 for position in range(32)]
    (book,) = runs["YaRN"]["data"]
    assert f"on the first 32k tokens of *{book}*" in PROSE and runs["YaRN"]["length"] == 32 * 1024
    more = {
        name: cell(paired_difference(runs[f"DPRoPE, {name}"], runs["DPRoPE, significant"], 64), 3)
        for name in ("t = 0", "n̂ = 26")
    }
    assert f"has the least loss beyond L, t = 0 {more['t = 0']} more." in PROSE
    assert f"has {more['n̂ = 26']} more, by pair 17 alone" in PROSE
    geometry = scales.get("smollm2").geometry
    significant, by_hand = (
        scale(geometry, run["method"], 4, **run["options"]).interpolated
        for run in (runs["DPRoPE, significant"], runs["DPRoPE, n̂ = 26"])
    )
    assert np.flatnonzero(significant != by_hand).tolist() == [17] and significant[17]
    assert (scale(geometry, "dprope", 4, n_hat=28).interpolated == significant).all()
    assert f"wavelength of {geometry.wavelength[17]:,.0f} tokens" in PROSE


def test_fine_tuned_table():
    lines = fine_tuned_rows()
    assert lines and set(lines) <= set(PAGE.splitlines())


def test_what_fine_tuning_says():
    untrained = same_text(RESULTS, "smollm2")
    distances = []
    for runs in (untrained, fine_tuned(RESULTS, "smollm2", untrained[0])):
        by_name = {name_of(run): run for run in runs}
        distances.append({name: paired_difference(run, by_name["YaRN"], 64)["mean"] for name, run in by_name.items()})
    before, after = distances
    for name, words in (
        ("PI", "PI's distance from YaRN"),
        ("DPRoPE, t = 0", "that of t = 0"),
        ("DPRoPE, n̂ = 28", "that of n̂ = 28"),
        ("DPRoPE, significant", "that of `dprope-significant`"),
    ):
        found = re.search(rf"{re.escape(words)} from (\d\.\d+) to (\d\.\d+)", PROSE).groups()
        assert found == (f"{before[name]:.3f}", f"{after[name]:.3f}")
    clex = after.pop("CLEX")
    assert abs(clex - after["DPRoPE, t = 0"]) < 0.002
    assert [name for name in sorted(before, key=before.get) if name in after] == sorted(after, key=after.get)
    made = records.load(RESULTS, "smollm2", "finetune")
    minutes = [run["seconds"] / 60 for run in made]
    assert f"took {min(minutes):.0f} to {max(minutes):.0f} minutes" in PROSE and len(made) == len(after) + 1
    assert {(run["steps"], run["batch"], run["length"]) for run in made} == {(20, 1, 4096)}


def repeated(run: str, experiment: str, name: str) -> list[dict]:
    """A record of the suite and the same of another run of the fine-tunes, first_run or third_run."""
    root = RESULTS / "smollm2"
    return [json.loads((folder / experiment / f"{name}.json").read_text()) for folder in (root, root / run)]


def same_passkeys(run: str) -> bool:
    """Whether CLEX finds the same in another run as in the suite's."""
    own, other = (found["scores"]["by_depth"] for found in repeated(run, "passkey", CLEX))
    return [row["mean"] for row in own] == [row["mean"] for row in other]


def test_what_a_second_run_repeats():
    changes = {}
    for file in (RESULTS / "smollm2" / "first_run" / "finetune").glob("*.json"):
        second, first = (np.array(run["losses"]) for run in repeated("first_run", "finetune", file.stem))
        changes[file.stem.split("_s=")[0]] = np.abs(second / first - 1)
    clex = changes.pop("clex")
    assert changes.keys() == {"pi", "yarn", "dprope", "dprope_n-hat=28", "dprope-significant"}
    assert f"the same losses in training to {1e7 * max(change.max() for change in changes.values()):.0f}·10⁻⁷" in PROSE
    assert clex[0] == 0 < clex[1]
    assert f"from the second step on, by up to {100 * clex.max():.1f} per cent" in PROSE
    means = [
        [score["mean"] for score in run["ranges"]] for run in repeated("first_run", "extension", f"{CLEX}_books=3")
    ]
    assert f"its two models differs by {np.abs(np.subtract(*means)).max():.4f} at most" in PROSE
    assert "and both find the same passkeys;" in PROSE and same_passkeys("first_run")


def test_what_a_third_run_repeats():
    """Whole books were scored by the models of the third; it gave the second's again, but for CLEX's."""
    for method in ("pi", "yarn", "dprope", "dprope_n-hat=28", "dprope-significant"):
        files = (f"ruler/{method}_s=2_seed=0.json", f"perplexity/{method}_s=2_seed=0_whole.json")
        second, third = (json.loads((RESULTS / "smollm2" / file).read_text())["model"]["sha256"] for file in files)
        assert second == third
    second, third = (np.array(run["losses"]) for run in repeated("third_run", "finetune", CLEX))
    change = np.abs(third / second - 1)
    assert change[0] == 0 < change[1] and f"parted again, by up to {100 * change.max():.1f} per cent" in PROSE
    second, third = repeated("third_run", "extension", f"{CLEX}_books=3")
    whole = json.loads((RESULTS / "smollm2" / "perplexity" / f"{CLEX}_whole.json").read_text())
    assert whole["model"]["sha256"] == third["model"]["sha256"] != second["model"]["sha256"]
    apart = np.abs(np.subtract(*([score["mean"] for score in run["ranges"]] for run in (second, third)))).max()
    assert f"the second and the third differ by {apart:.4f} at most, and they too find the same passkeys." in PROSE
    assert same_passkeys("third_run")


def short_text_rows(trained: bool) -> list[str]:
    """The lines of a table of what extending costs within L, fine-tuned or not; then, last, what training changed."""
    lines = []
    for name, scores in cost_within(trained).items():
        cells = [points(score) for score in scores.values()]
        if trained:
            cells.append(points(change_by_training(name)))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def change_by_training(name: str) -> dict | None:
    """Open LLM's average of the fine-tuned model minus the same untrained, paired by item; CLEX is none untrained."""
    before, after = (measured("open_llm", trained).get(name) for trained in (False, True))
    if name == "CLEX":
        assert before is None
        return None
    return paired_average(before, after)


def paired_average(before: dict, after: dict) -> dict:
    """By how many points Open LLM's average differs between two records, paired by item."""
    scores = [[100 * np.array(items) for items in run["by_document"].values()] for run in (before, after)]
    assert before["by_document"].keys() == after["by_document"].keys()
    change = mean_of_means([new - old for old, new in zip(*scores)])
    assert change["n"] == 2000
    return change


@pytest.mark.parametrize("trained", (False, True))
def test_short_text_tables(trained):
    lines = short_text_rows(trained)
    assert lines and set(lines) <= set(PAGE.splitlines())


def test_what_short_text_says():
    found = cost_within(trained=False)
    benchmarks = [(name, task, score) for name, scores in found.items() for task, score in list(scores.items())[1:]]
    differing = {(name, task) for name, task, score in benchmarks if score["low"] > 0 or score["high"] < 0}
    averages = {(name, task) for name, task in differing if list(found[name])[-1] == task}
    assert {name for name, _ in averages} == {"PI"}
    at_zero = {"DPRoPE, t = 0", *(f"DPRoPE, t = 0, b = {b}" for b in (90, 180, 720))}
    assert at_zero <= found.keys() and differing - averages == {("PI", "HellaSwag")} | {
        (name, "ARC-c") for name in {*at_zero, "DPRoPE, n̂ = 40"}
    }
    single = len(benchmarks) - len(found)
    assert f"of {single}, two or three would by chance" in PROSE and 2 < 0.05 * single < 3


def test_what_the_benchmarks_see_of_the_number_of_intervals():
    runs = measured("open_llm")
    changes = [points(paired_average(runs["DPRoPE, t = 0"], runs[f"DPRoPE, t = 0, b = {b}"])) for b in (90, 180, 720)]
    first, second, third = (change.removeprefix("+") for change in changes)
    assert f"with b = 90 differs by {first} points, with 180 by {second}, with 720 by {third} (" in PROSE
    published = common.paper("intervals_openllm").groupby("intervals")["score"].mean()
    assert f"the paper's four, fine-tuned, lie within {published.max() - published.min():.1f}" in PROSE


def test_what_short_text_says_after_fine_tuning():
    after = measured("open_llm", trained=True)
    changes = {name: change_by_training(name) for name in after if name != "CLEX"}
    assert all(change["low"] < 0 < change["high"] for change in changes.values())
    found = cost_within(trained=True)
    within = {name: scores["Perplexity"] for name, scores in found.items()}
    below = {"YaRN", "DPRoPE, n̂ = 28", "DPRoPE, significant"}
    assert {name for name, score in within.items() if score["high"] < 0} == below
    assert 0 < within["CLEX"]["low"] and within["CLEX"]["high"] < 3 and 45 < within["PI"]["mean"] < 55
    assert all(scores["Avg."]["low"] < 0 < scores["Avg."]["high"] for scores in found.values())
    tuned = NUMBERS[len(records.load(RESULTS, "smollm2", "finetune"))]
    assert f"tell none of the {tuned} from the unextended model in the average" in PROSE


def passkey_rows(trained: bool) -> list[str]:
    """The lines of a table of passkeys found by SmolLM2 extended, fine-tuned or not."""
    lines = []
    for name, record in measured("passkey", trained).items():
        rows = record["scores"]["by_length"]
        assert [row["length"] for row in rows] == [4096, 8192, 12288, 16384] and all(row["n"] == 3 for row in rows)
        cells = [f"{3 * row['mean']:.0f}/3" for row in rows]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


@pytest.mark.parametrize("trained", (False, True))
def test_passkey_tables(trained):
    lines = passkey_rows(trained)
    assert lines and set(lines) <= set(PAGE.splitlines())


def test_what_the_passkeys_say():
    found = keys_found()
    for name, cells in found.items():
        share = accuracy_interval(np.array(list(cells.values())))
        assert share["n"] == 12 and cell(share, 0, 100).replace(" [", " % [", 1) in PROSE
        assert NUMBERS[round(12 * share["mean"])] in PROSE, name
    yarn, argmin = found["YaRN"], found["DPRoPE, t = 0"]
    assert not any(yarn[length, 1.0] for length in (4096, 8192, 12288, 16384))
    differing = [argmin[place] - yarn[place] for place in yarn if argmin[place] != yarn[place]]
    assert differing == [1, 1, 1] and binomtest(3, 3).pvalue == 0.25
    plain, fewer, more = (found[name] for name in ("YaRN, attention × 1.00", "DPRoPE, n̂ = 24", "DPRoPE, n̂ = 28"))
    assert {place for place in yarn if yarn[place] != plain[place]} == {(4096, 1.0), (12288, 1.0)}
    assert found["DPRoPE, n̂ = 28, attention × 1.07"] == yarn
    assert {place for place in yarn if yarn[place] != more[place]} == {(length, 1.0) for length in (4096, 8192, 12288)}
    assert f"p = {binomtest(5, 5).pvalue:.2f} by a sign test; for the tiny base" in PROSE
    assert not any(fewer[length, 1.0] for length in (4096, 8192, 12288, 16384))
    assert [more[place] - fewer[place] for place in more if more[place] != fewer[place]] == [1] * 6
    assert f"p = {binomtest(6, 6).pvalue:.2f}." in PROSE
    geometry, runs = scales.get("smollm2").geometry, {name_of(run): run for run in same_text(RESULTS, "smollm2")}
    smaller, larger = (set(np.flatnonzero(scale(geometry, "dprope", 2, n_hat=n).interpolated)) for n in (24, 28))
    assert larger - smaller == {4, 20} and smaller < larger
    assert f"{2 * np.pi / geometry.inv_freq[20]:,.0f} tokens is just beyond L" in PROSE
    lost = paired_difference(runs["DPRoPE, n̂ = 24"], runs["DPRoPE, n̂ = 28"], 64)
    assert f"worth {cell(lost, 3)} nats".replace("-", "−") in PROSE


def test_what_the_passkeys_say_after_fine_tuning():
    before, after = keys_found(), keys_found(trained=True)
    both = before.keys() & after.keys()
    changed = {name: {at for at in after[name] if before[name][at] != after[name][at]} for name in both}
    assert changed.pop("DPRoPE, n̂ = 28") == {(12288, 1.0)} and before["DPRoPE, n̂ = 28"][12288, 1.0]
    assert changed.keys() == {"PI", "YaRN", "DPRoPE, t = 0", "DPRoPE, significant"} and not any(changed.values())
    assert not any(after[name][length, 1.0] for name in ("YaRN", "CLEX") for length in (4096, 8192, 12288, 16384))
    assert sum(after["CLEX"].values()) == 6


def test_how_far_training_moves_heads_that_look_back():
    before, after = (measured("previous_token", trained) for trained in (False, True))
    assert after.keys() - before.keys() == {"CLEX"}
    own = [[group[name]["scores"]["own"]["mean"] for name in before.keys() & after.keys()] for group in (before, after)]
    assert f"moved none by more than {np.abs(np.subtract(*own)).max():.1f} points" in PROSE


def ruler_prompts(trained: bool = False) -> dict[str, np.ndarray]:
    """The score of every prompt, in one order, by the name of the row."""
    return {
        name: np.array([score["mean"] for tasks in run["scores"]["tasks"].values() for score in tasks.values()])
        for name, run in measured("ruler", trained).items()
    }


def ruler_rows(trained: bool) -> list[str]:
    """The lines of a table of RULER: each score, what it differs by from YaRN's and, fine-tuned, from the untrained."""
    lines, prompts, untrained = [], ruler_prompts(trained), ruler_prompts()
    for name, run in measured("ruler", trained).items():
        assert len(run["tasks"]) == 13 and run["samples"] == 1
        cells = [name, *(cell(score, 1) for score in ruler.scores(run).values())]
        cells += compared(prompts[name], None if name == "YaRN" else prompts["YaRN"])
        if trained:
            cells += compared(prompts[name], untrained.get(name))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def compared(scores: np.ndarray, others: np.ndarray | None) -> list[str]:
    """By how much one model's prompts score more than another's, how many of them more and less; dashes for none."""
    if others is None:
        return ["–", "–"]
    gaps = scores - others
    better, worse, p = sign_test(gaps)
    shown = f"{p:.2f}" if p >= 0.005 else re.sub(r"e-0(\d)", lambda e: "·10⁻" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(e[1])], f"{p:.0e}")
    return [points(mean_interval(gaps)), f"{better} : {worse}, p = {shown}"]


def sign_test(gaps: np.ndarray) -> tuple[int, int, float]:
    """How many prompts are answered better and worse, and p."""
    better, worse = (int(np.count_nonzero(sign * gaps > 0)) for sign in (1, -1))
    return better, worse, binomtest(better, better + worse).pvalue if better + worse else 1.0


@pytest.mark.parametrize("trained", (False, True))
def test_ruler_tables(trained):
    lines = ruler_rows(trained)
    assert lines and set(lines) <= set(PAGE.splitlines())


def test_what_ruler_says():
    prompts, at_16k = ruler_prompts(), slice(26, 39)
    yarn = prompts["YaRN"]
    assert len(yarn) == 39 and not prompts["PI"].any()
    minutes = [run["seconds"] / 60 for run in measured("ruler").values()]
    assert f"{min(minutes):.0f} to {max(minutes):.0f} minutes of one core a method" in PROSE
    answered = {name: np.count_nonzero(scores[at_16k]) for name, scores in prompts.items()}
    assert answered.pop("original") == answered.pop("PI") == 0
    assert answered.pop("YaRN") == answered.pop("DPRoPE, n̂ = 28") == 3 and set(answered.values()) == {2}
    gaps = {name: scores - yarn for name, scores in prompts.items() if name != "YaRN"}
    assert {name for name in gaps if sign_test(gaps[name])[2] < 0.05} == {"PI"}
    intervals = {name: mean_interval(gap) for name, gap in gaps.items()}
    assert {name for name in gaps if intervals[name]["high"] < 0} == {
        *("original", "PI", "DPRoPE, n̂ = 36", "DPRoPE, significant")
    }
    assert not any(interval["low"] > 0 for interval in intervals.values())
    below = {name: round(-interval["mean"]) for name, interval in intervals.items()}
    assert below["NTK-aware"] == 2 and {below[name] for name in below if "DPRoPE" in name} == {7, 8, 10}
    lacking = ("original", "DPRoPE, n̂ = 36", "DPRoPE, significant")
    assert [np.count_nonzero(gaps[name] == -100) for name in lacking] == [6, 4, 4]
    sweep = [name for name in prompts if name.startswith("DPRoPE")]
    tests = {pair: sign_test(prompts[pair[0]] - prompts[pair[1]]) for pair in combinations(sweep, 2)}
    furthest = min(tests, key=lambda pair: tests[pair][2])
    assert len(sweep) == 6 and furthest == ("DPRoPE, t = 0", "DPRoPE, n̂ = 28") and tests[furthest] == (0, 4, 0.125)


def test_what_ruler_says_after_fine_tuning():
    before, after = ruler_prompts(), ruler_prompts(trained=True)
    assert f"RULER's {len(after['YaRN'])} prompts;" in PROSE and after.keys() == measured("open_llm", True).keys()
    to_yarn = {name: scores - after["YaRN"] for name, scores in after.items() if name != "YaRN"}
    by_training = {name: scores - before[name] for name, scores in after.items() if name in before}
    assert {name for name, gaps in to_yarn.items() if sign_test(gaps)[2] < 0.05} == {"PI"}
    assert all(sign_test(gaps)[2] > 0.05 for gaps in by_training.values())
    changed = {
        name: {i // 13: list(gaps[i : i + 13][gaps[i : i + 13] != 0]) for i in (0, 13, 26)}
        for name, gaps in by_training.items()
    }
    assert changed.keys() == {"PI", "YaRN", *(f"DPRoPE, {setting}" for setting in ("t = 0", "n̂ = 28", "significant"))}
    assert changed["DPRoPE, t = 0"] == {0: [75], 1: [100, 25], 2: [pytest.approx(100 / 3)]}
    assert sign_test(by_training["DPRoPE, t = 0"]) == (4, 0, 0.125)
    average = {name: scores.mean() for name, scores in after.items()}
    assert sorted(average, key=average.get)[-3:] == ["DPRoPE, n̂ = 28", "DPRoPE, t = 0", "YaRN"]
    others = [sign_test(after["DPRoPE, t = 0"] - scores)[2] for name, scores in after.items() if name != "PI"]
    assert min(others) > 0.05
    assert changed["PI"] == {0: [], 1: [100], 2: []} and by_training["PI"][25] == 100  # RULER's qa_2
    better, at_8k, at_16k = changed["YaRN"].values()
    assert len(better) == 4 and min(better) > 0 and len(at_8k) == len(at_16k) == 1 and max(*at_8k, *at_16k) < 0
    assert changed["DPRoPE, n̂ = 28"] == {0: [], 1: [], 2: [-25]}
    assert changed["DPRoPE, significant"] == {0: [25], 1: [], 2: []}


def test_what_the_sweep_over_n_hat_says():
    runs = {str(run["options"] or run["method"]): run for run in same_text(RESULTS, "smollm2")}
    best = runs["{'n_hat': 40}"]
    for name in ("dprope", "{'n_hat': 28}", "dprope-significant"):
        assert cell(paired_difference(runs[name], best, 64), 3).replace("-", "−") in PROSE
    geometry, chosen = scales.get("smollm2").geometry, {}
    for n_hat in (24, 28, 40):
        chosen[n_hat] = set(np.flatnonzero(scale(geometry, "dprope", 2, n_hat=n_hat).interpolated))
    at_zero = set(np.flatnonzero(scale(geometry, "dprope", 2).interpolated))
    assert len(at_zero) == 24 and at_zero - chosen[40] == {2, 3, 6, 8} and chosen[40] < at_zero
    beyond = set(np.flatnonzero(2 * np.pi / geometry.inv_freq > geometry.context_length))
    assert beyond <= chosen[28] and len(beyond - chosen[24]) == 1


def test_what_the_number_of_intervals_decides():
    runs = {name_of(run): run for run in same_text(RESULTS, "smollm2")}
    geometry, pairs = scales.get("smollm2").geometry, {}
    for b in (90, 180, 360, 720):
        pairs[b] = set(np.flatnonzero(scale(geometry, "dprope", 2, intervals=b).interpolated))
    assert (pairs[360] - pairs[90], pairs[90] - pairs[360]) == ({2, 6}, {9, 10, 13})
    assert (pairs[180] - pairs[90], pairs[90] - pairs[180]) == ({2}, set())
    assert (pairs[360] - pairs[720], pairs[720] - pairs[360]) == ({2, 6, 8}, {0, 7})
    by_b = {b: runs["DPRoPE, t = 0" + (f", b = {b}" if b != 360 else "")] for b in pairs}
    less = paired_difference(by_b[360], by_b[90], 64)
    second, third = (cell(paired_difference(by_b[b], by_b[360], 64), 3) for b in (180, 720))
    assert f"the first has {cell(less, 3)} less loss, the second {second} more and the third {third} more" in PROSE
    assert f"b = 180 from b = 90, makes {cell(paired_difference(by_b[180], by_b[90], 64), 3)}" in PROSE
    averages = disturbances(RESULTS, "smollm2", list(by_b.values()))
    assert [f"{1e3 * average:.2f}" for average in averages] == ["0.69", "0.69", "0.67", "0.69"]


def test_what_the_temperature_does():
    runs = {name_of(run): run for run in same_text(RESULTS, "smollm2")}
    plain, with_it = runs["DPRoPE, n̂ = 28"], runs["DPRoPE, n̂ = 28, attention × 1.07"]
    lost = paired_difference(runs["YaRN, attention × 1.00"], runs["YaRN"], 64)
    assert f"without it, it loses {cell(lost, 3)}".replace("-", "−") in PROSE
    gained = paired_difference(plain, with_it, 64)
    assert f"n̂ = 28 with it gains {cell(gained, 3)}" in PROSE


def test_what_the_selections_say():
    (record,) = records.load(RESULTS, "smollm2", "selections")
    found = [cell(record["spearman"][name], 2).replace("-", "−") for name in ("released", "equation")]
    assert f"Over {len(record['scores'])} selections" in PROSE
    assert f"ρ is {found[0]} by the released code's convention and {found[1]} by equation (7)'s" in PROSE
    loss = {tuple(row["interpolated_pairs"]): round(row["beyond"]["mean"], 2) for row in record["scores"]}
    moved = {tuple(row["interpolated_pairs"]): 1e3 * row["disturbance"]["released"] for row in record["scores"]}
    collapsed = {pairs for pairs in loss if not {22, 23} <= set(pairs)}
    assert (
        min(loss[pairs] for pairs in collapsed) == 4.47 > max(loss[pairs] for pairs in loss if pairs not in collapsed)
    )
    assert (round(min(map(moved.get, collapsed))), round(max(map(moved.get, collapsed)))) == (57, 226)
    least_moved = [loss[pairs] for pairs in moved if 0.665 < moved[pairs] < 0.815]
    assert (min(least_moved), max(least_moved)) == (3.06, 4.03)
    assert (loss[22, 23, 24, 25], round(moved[22, 23, 24, 25])) == (3.07, 140)
    best = min(loss, key=loss.get)
    assert (len(best), loss[best], round(moved[best], 2)) == (20, 3.06, 0.68)


def test_the_export_gives_what_the_model_in_memory_gives():
    (record,) = records.load(RESULTS, "smollm2", "exported")
    said = f"{record['scores']['stock']:.4f} on the last 1,024 of the first {record['tokens']:,} tokens"
    assert f"a perplexity of {said}" in PROSE
    assert record["scores"]["relative_difference"] < 5e-8  # "the same to seven digits"


def test_how_long_the_suite_takes():
    """What `make rerun` runs, by the times in the records."""
    plan = Plan("smollm2", scales.get("smollm2"), Path(), RESULTS, quick=False)
    seconds = 0
    for chain in plan.chains():
        for module, *arguments in chain.commands:
            experiment = module.removeprefix("experiments.")
            texts = "_whole" if experiment == "perplexity" else ""
            if experiment == "extension":
                texts = f"_books={arguments[arguments.index('--books') + 1]}"
            name = f"{chain.name}{texts}.json" if chain.name != "once" else "*.json"
            files = list((RESULTS / "smollm2" / experiment).glob(name))
            assert files
            seconds += sum(json.loads(file.read_text()).get("seconds", 0) for file in files)
    for text in (PROSE, page("README.md")[1]):
        said = re.search(r"take two cores about (\d+) hours[^(]*\((\d+) of one core", text)
        assert tuple(map(int, said.groups())) == (round(seconds / 7200), round(seconds / 3600))


def test_evaluation_table():
    """Every measured cell of the table of SmolLM2-135M as it is."""

    def record(experiment):
        (found,) = [run for run in records.load(RESULTS, "smollm2", experiment) if run["method"] == "original"]
        return found

    rows = [[line.strip() for line in row.strip("|").split("|")] for row in PAGE.splitlines() if row.startswith("| ")]
    found = {row[0]: row[1:] for row in rows if len(row) == 3}

    openllm = record("open_llm")
    titles = {"TruthfulQA": "truthfulqa", "HellaSwag": "hellaswag", "MMLU": "mmlu", "ARC-c": "arc_challenge"}
    for title, name in titles.items():
        score = openllm["scores"][name]
        assert found[title] == [f"{score['n']} items", cell(score, 1)]
    for length, score in record("ruler")["scores"]["lengths"].items():
        assert found[f"RULER, {int(length) // 1024}k"] == [f"{score['n']} prompts", cell(score, 1)]
    tasks = record("ruler")["scores"]["tasks"]
    assert all(tasks["4096"][f"niah_single_{i}"]["mean"] == 100 for i in (1, 2))
    assert not any(tasks[length][f"niah_multikey_{i}"]["mean"] for length in ("4096", "8192") for i in (1, 2, 3))
    for row in record("perplexity")["scores"]:
        text = f"{row['windows']} windows, {row['tokens']:,} tokens"
        cells = f"{cell(row['token'], 2)}; by window {cell(row['window'], 2)}"
        assert found[f"Perplexity, {row['length'] // 1024}k"] == [text, cells]
    for bucket, score in record("longbench_e")["scores"]["tasks"]["multi_news"].items():
        assert found[f"LongBench multi_news, {bucket}"] == [f"{score['n']} items", cell(score, 1)]
    for row in record("passkey")["scores"]["by_length"]:
        text = f"{row['n']} prompts"
        assert found[f"Passkey, {row['length'] // 1024}k"] == [text, cell(row, 0, 100)]
