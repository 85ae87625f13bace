"""Numbers of results/claims.csv and results/all.csv, computed again from the records with pandas
and SciPy alone."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

RESULTS = Path(__file__).parents[2] / "results"
CONTEXT = {"tiny": 1024, "smollm2": 8192}
BOOKS = {"tiny": 30, "smollm2": 20}
N_HAT = {2: {"n_hat": 40}, 4: {"n_hat": 32}}  # 5/8 and 1/2 of 64
RIVALS = [("pi", {}), ("yarn", {}), ("clex", {})]


@pytest.fixture(scope="module")
def claims():
    return pd.read_csv(RESULTS / "claims.csv").set_index(["key", "model"])


def by_setting(model, experiment, trained):
    """The scores of an experiment by method, options and factor, and by seed, -1 without
    training."""
    runs = {}
    for file in sorted((RESULTS / model).glob(f"**/{experiment}/*.json")):
        record = json.loads(file.read_text())
        run = record["run"]
        seed = run["training"]["seed"] if "training" in run else -1
        if (seed >= 0) == trained and (
            experiment != "loss_by_position" or len(run["data"]) == BOOKS[model]
        ):
            runs.setdefault((run["method"], json.dumps(run["options"]), run["factor"]), {})[
                seed
            ] = record["scores"]
    return runs


def pair(runs, ours, other, factor):
    """The scores of two settings by the seeds that both have; empty where one is not there."""
    both = [
        runs.get((method, json.dumps(options), factor), {}) for method, options in (ours, other)
    ]
    return [[each[seed] for each in both] for seed in sorted(both[0].keys() & both[1].keys())]


def estimate(mean, *errors):
    """(mean, standard error, degrees of freedom) of independent errors, by Welch and
    Satterthwaite."""
    error = np.sqrt(sum(each**2 for each, _ in errors))
    return float(mean), error, error**4 / sum(each**4 / freedom for each, freedom in errors)


def of_sample(values):
    return values.std(ddof=1) / np.sqrt(len(values)), len(values) - 1


def at_95_per_cent(mean, error, freedom):
    """[mean, low, high]."""
    half = stats.t.ppf(0.975, freedom) * error
    return [mean, mean - half, mean + half]


def by_book(scores, model):
    """The loss within L and beyond it of each book, in the order of titles: [books, 2]."""
    blocks = pd.DataFrame(scores["blocks"])
    edge = CONTEXT[model] // scores["block"]
    of = blocks.columns.str.replace(r" \(\d+\)$", "", regex=True)
    sides = [blocks[:edge].mean().groupby(of).mean(), blocks[edge:].mean().groupby(of).mean()]
    return np.array(sides).T


@pytest.mark.parametrize("model", BOOKS)
@pytest.mark.parametrize("key", ["perplexity", "less_is_better"])
def test_losses(claims, key, model):
    """The paper's perplexities are without training; the rest is of fine-tunes if those scored
    whole books."""
    trained = (key, model) == ("less_is_better", "tiny")
    runs = by_setting(model, "loss_by_position", trained)
    family = {}
    zero = ("dprope", {})
    for factor in (2, 4):
        own = ("dprope", N_HAT[factor])
        rivals = RIVALS[:2] if key == "perplexity" else [*RIVALS[:2], own]
        for rival in rivals:
            pairs = pair(runs, own if key == "perplexity" else zero, rival, factor)
            if gaps := [
                (by_book(ours, model) - by_book(others, model))[:, 1] for ours, others in pairs
            ]:
                gaps = np.array(gaps)
                assert gaps.shape == (3 if trained else 1, BOOKS[model])
                errors = [of_sample(gaps.mean(axis=axis)) for axis in range(1 + trained)]
                family[factor, str(rival)] = estimate(gaps.mean(), *errors)
    row = claims.loc[key, model]
    expected = at_95_per_cent(*family[2, str(("yarn", {}))])
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(expected, rel=1e-4)
    # So sure of each sign that Bonferroni rejects zero for all, as Holm then does.
    for mean, error, freedom in family.values():
        assert 2 * stats.t.sf(abs(mean) / error, freedom) < 0.05 / len(family)
    above_zero = any(mean > 0 for mean, _, _ in family.values())
    assert row["outcome"] == ("does not hold here" if above_zero else "holds here")
    state = "fine-tuned, 3 seeds" if trained else "without training"
    assert row["measured_on"] == f"{state}, {BOOKS[model]} books"


@pytest.mark.parametrize("model", BOOKS)
def test_a_collapse_is_beside_yarns_change_on_the_same_books(model):
    runs = by_setting(model, "loss_by_position", trained=False)
    ((original, yarn),) = pair(runs, ("original", {}), ("yarn", {}), 2)
    change = np.diff(by_book(original, model) - by_book(yarn, model)).ravel()
    expected = at_95_per_cent(*estimate(change.mean(), of_sample(change)))
    place = "s = 2, beyond minus within | original minus YaRN"
    page = (RESULTS / "claims.md").read_text().replace("−", "-")
    title = {"tiny": "tiny", "smollm2": "SmolLM2-135M"}[model]
    line = rf"^\| {title}, without training, .* {re.escape(place)} \|(.*)$"
    row = re.search(line, page, re.MULTILINE)[1]
    numbers = [float(each) for each in re.findall(r"-?\d+\.\d+", row.replace("+", ""))]
    assert numbers[:3] == pytest.approx(expected, abs=0.00051)
    assert f"on {(change > 0).sum()} of {BOOKS[model]} books" in row
    assert "**holds here**" in row


def untrained(experiment, method, options=None):
    """SmolLM2's scores at s = 2."""
    return by_setting("smollm2", experiment, trained=False)[method, json.dumps(options or {}), 2][
        -1
    ]


def test_short_text(claims):
    """Open LLM by document: DPRoPE minus YaRN."""
    ours, others = (
        untrained("open_llm", *setting)["by_document"]
        for setting in (("dprope", N_HAT[2]), ("yarn",))
    )
    groups = [100 * np.subtract(ours[name], others[name]) for name in ours]
    errors = [(error / len(groups), freedom) for error, freedom in map(of_sample, groups)]
    expected = at_95_per_cent(*estimate(np.mean([group.mean() for group in groups]), *errors))
    row = claims.loc["open_llm", "smollm2"]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(expected, rel=1e-3)


def test_ruler_is_over_tasks_at_the_extended_length(claims):
    def tasks(*setting):
        scores = untrained("ruler", *setting)["tasks"]["16384"]
        return np.array([scores[task]["mean"] for task in sorted(scores)])

    gap = tasks("dprope", N_HAT[2]) - tasks("yarn")
    row = claims.loc["ruler", "smollm2"]
    expected = at_95_per_cent(*estimate(gap.mean(), of_sample(gap)))
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(expected, rel=1e-3)
    assert row["measured_on"] == "without training, 13 tasks"


def test_all_csv_prints_the_tables_as_results_readme_says(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (RESULTS / "README.md").read_text(), re.DOTALL)
    exec(code.replace("results/all.csv", str(RESULTS / "all.csv")), {})
    printed = capsys.readouterr().out
    assert re.search(r"^dprope +6\.71 +22\.95$", printed, re.MULTILINE)  # the paper's Table 3
    run = json.loads((RESULTS / "smollm2/perplexity/yarn_s=2_whole.json").read_text())
    windows = pd.DataFrame(run["scores"]["by_window"]).T.set_axis(["loss", "tokens"], axis=1)
    text, length, _ = zip(*windows.index.str.rsplit("/", n=2))
    sums = windows.groupby([np.array(length).astype(int), np.array(text)]).sum()
    by_length = np.exp((sums["loss"] / sums["tokens"]).groupby(level=0).mean())
    assert re.search(
        rf"^yarn +{by_length[16384]:.2f} +{by_length[8192]:.2f}$", printed, re.MULTILINE
    )


@pytest.fixture(scope="module")
def scores():
    table = pd.read_csv(RESULTS / "all.csv", dtype={"part": str})
    table = table.fillna({"part": "", "method": "", "options": ""})
    return table.set_index(["model", "part", "experiment", "method", "factor"]).sort_index()


def test_all_csv_has_every_record_with_scores(scores):
    without = {"finetune", "served"}  # which have no scores of a method's own
    found = set()
    for file in RESULTS.glob("*/**/*.json"):
        record = json.loads(file.read_text())
        if file.name == "model.json" or record["run"]["experiment"] in without:
            continue
        run = record["run"]
        model, *between, experiment, _ = file.relative_to(RESULTS).parts
        part = between[1] if len(between) == 2 else ""
        rows = [run] if "method" in run else record["scores"]["rows"]
        for method in {row.get("method", "dprope") for row in rows}:
            setting = (method, float(run["factor"]), "training" in run)
            found.add((model, part, experiment, *setting))
    in_table = scores.set_index("trained", append=True)
    assert found <= set(in_table.index)
    assert {key[2] for key in {*in_table.index} - found} == {"disturbance"}
    one = in_table.set_index(["options", "metric", "n"], append=True)
    assert not one.index.has_duplicates


@pytest.mark.parametrize("model", CONTEXT)
def test_held_out_losses_of_all_csv_are_those_of_the_records(scores, model):
    """Of factors that were learned from YaRN's."""
    folder = RESULTS / model / "beyond"
    learned = [json.loads(file.read_text()) for file in folder.glob("learned/from=yarn_s=2_*.json")]
    ends = pd.DataFrame([run["scores"]["curve"][-1]["beyond"] for run in learned])["mean"]
    lines = scores.loc[model, "", "learned", "yarn", 2.0]
    line = lines[(lines["options"] == "") & (lines["metric"] == "beyond L")]
    assert line["value"].item() == pytest.approx(ends.mean(), rel=1e-5)


@pytest.mark.parametrize(("model", "part"), [("smollm2", "h200"), ("tiny", "rates"), ("tiny", "")])
def test_losses_within_and_beyond_l_of_all_csv_are_those_of_the_records(scores, model, part):
    """YaRN at s = 2, fine-tuned at the default rate if there is such a run."""
    of = scores.loc[model, part, "loss_by_position", "yarn", 2.0]
    trained = part != ""
    of = of[(of["options"] == "") & (of["trained"] == trained)].set_index("metric")
    run = "yarn_s=2_seed=0" if trained else "yarn_s=2"
    (file,) = (RESULTS / model / "beyond" / part / "loss_by_position").glob(f"{run}_books=*.json")
    by_place = by_book(json.loads(file.read_text())["scores"], model)
    for place, losses in (
        ("within L", by_place[:, 0]),
        ("beyond L", by_place[:, 1]),
        ("beyond minus within", by_place[:, 1] - by_place[:, 0]),
    ):
        expected = at_95_per_cent(*estimate(losses.mean(), of_sample(losses)))
        found = of.loc[place]
        assert [found["value"], found["low"], found["high"]] == pytest.approx(expected, abs=2e-5)
        assert found["n"] == len(losses)
