"""Numbers of README, results/claims.csv and results/all.csv, computed again from the records with
NumPy, pandas and SciPy alone."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
TITLES = {"tiny": "tiny", "smollm2": "SmolLM2-135M", "llama2-7b": "LLaMA2-7B"}
BEYOND = 1  # of :func:`by_book`
LINK = re.compile(r"\[((?:[^][]|\[[^]]*\])*)\]\(([^)]*)\)")  # its text, which may hold an interval


@pytest.fixture(scope="module")
def readme():
    """The cells of its tables by their row's first, without links."""
    rows = {}
    for line in (ROOT / "README.md").read_text().splitlines():
        if line.startswith("| "):
            first, *others = LINK.sub(r"\1", line).strip("|").split(" | ")
            rows[first.strip()] = [cell.strip() for cell in others]
    return rows


@pytest.fixture(scope="module")
def claims():
    return pd.read_csv(RESULTS / "claims.csv").set_index(["key", "model"])


@pytest.fixture(scope="module")
def scores():
    table = pd.read_csv(RESULTS / "all.csv", dtype={"part": str})
    table = table.fillna({"part": "", "method": "", "options": ""})
    return table.set_index(["model", "part", "experiment", "method", "factor"]).sort_index()


def numbers(text):
    plain = text.replace("−", "-").replace("+", "")
    return [float(each) for each in re.findall(r"-?\d+\.\d+", plain)]


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


def student(values):
    return at_95_per_cent(*estimate(values.mean(), of_sample(values)))


# Records


def by_setting(experiment, trained):
    """SmolLM2's scores of an experiment by method, options and factor, and by seed, -1 without
    training."""
    runs = {}
    for file in sorted((RESULTS / "smollm2").glob(f"**/{experiment}/*.json")):
        record = json.loads(file.read_text())
        run = record["run"]
        seed = run["training"]["seed"] if "training" in run else -1
        whole = experiment != "loss_by_position" or len(run["data"]) == 20
        if whole and (seed >= 0) == trained:
            setting = (run["method"], json.dumps(run["options"]), run["factor"])
            runs.setdefault(setting, {})[seed] = record["scores"]
    return runs


def by_book(scores):
    """SmolLM2's loss within L and beyond it of each of 20 books, in the order of titles: [books,
    2]."""
    blocks = pd.DataFrame(scores["blocks"])
    edge = 8192 // scores["block"]
    of = blocks.columns.str.replace(r" \(\d+\)$", "", regex=True)
    sides = [blocks[:edge].mean().groupby(of).mean(), blocks[edge:].mean().groupby(of).mean()]
    losses = np.array(sides).T
    assert losses.shape == (20, 2)
    return losses


def of_file(name):
    """The losses of a record at s = 2: [books, 2]."""
    file = RESULTS / "smollm2/beyond" / f"{name}_books=20.json"
    return by_book(json.loads(file.read_text())["scores"])


def untrained(method):
    return of_file(f"loss_by_position/{method}_s=2")


# README


YARNS = f"{0.1 * np.log(2) + 1:.3f}"  # at s = 2
LONGROPES = f"{np.sqrt(1 + np.log(2) / np.log(8192)):.3f}"


@pytest.mark.parametrize(
    ("start", "method", "temperature"),
    [
        ("LongRoPE2's rule", "longrope2", LONGROPES),
        ("YaRN without blend", "dprope-covered", YARNS),
        ("DPRoPE at n̂ = 40", "dprope_n-hat=40", "none"),
        ("DPRoPE at t = 0", "dprope", "none"),
        ("PI:", "pi", "none"),
        ("original:", "original", "none"),
    ],
)
def test_methods_side_by_side(readme, start, method, temperature):
    """Temperature, and loss within L, beyond L and beyond minus within, less YaRN's."""
    (cells,) = (cells for first, cells in readme.items() if first.startswith(start))
    within, beyond = (untrained(method) - untrained("yarn")).T
    assert cells[0] == temperature
    for cell, gaps in zip(cells[1:], (within, beyond, beyond - within), strict=True):
        assert numbers(cell) == pytest.approx(student(gaps), abs=0.00051)


def test_outcomes_are_those_of_the_table_of_claims(readme):
    table = pd.read_csv(RESULTS / "claims.csv")
    shown = [claim for claim in table["claim"].unique() if claim in readme]
    assert len(shown) > 3
    for claim in shown:
        rows = table[table["claim"] == claim]
        printed = set()
        for outcome, models in re.findall(r"\*\*([^*]+)\*\*: ([^;]+)", readme[claim][0]):
            names = (model.split(" (")[0] for model in models.strip().split(", "))
            printed |= {(outcome, model) for model in names}
        models = rows["model"].map(TITLES)
        assert printed == set(zip(rows["outcome"].str.removesuffix(" here"), models))


def test_hours_are_those_of_the_records():
    """The clock time of each record, times the machine's cores."""
    seconds = 0.0
    for file in RESULTS.rglob("*/*/*.json"):
        environment = json.loads(file.read_text())["environment"]
        if cores := re.match(r"(\d+) × ", environment["device"]):
            seconds += environment["seconds"] * int(cores[1])
    stated = re.search(r"at most (\d+) CPU-hours", (RESULTS / "README.md").read_text())
    assert stated[1] == f"{seconds / 3600:.0f}"


# The claims


@pytest.mark.parametrize("key", ["perplexity", "less_is_better"])
def test_losses(claims, key):
    """The paper's perplexities are without training; the rest is of fine-tunes where t = 0 is
    one."""
    papers = ("dprope", '{"n_hat": 40}', 2)
    ours = papers if key == "perplexity" else ("dprope", "{}", 2)
    rivals = [("pi", "{}", 2), ("yarn", "{}", 2)]
    if key == "less_is_better":
        rivals.append(papers)
    runs = by_setting("loss_by_position", trained=True)
    trained = key == "less_is_better" and ours in runs
    if not trained:
        runs = by_setting("loss_by_position", trained=False)
    family = {}
    for rival in rivals:
        for seed in runs[ours].keys() & runs.get(rival, {}).keys():
            gaps = (by_book(runs[ours][seed]) - by_book(runs[rival][seed]))[:, BEYOND]
            family[rival[0]] = estimate(gaps.mean(), of_sample(gaps))
    row = claims.loc[key, "smollm2"]
    expected = at_95_per_cent(*family["yarn"])
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(expected, rel=1e-4)
    # So sure of each sign that Bonferroni rejects zero for all, as Holm then does.
    for mean, error, freedom in family.values():
        assert 2 * stats.t.sf(abs(mean) / error, freedom) < 0.05 / len(family)
    above_zero = any(mean > 0 for mean, _, _ in family.values())
    assert row["outcome"] == ("does not hold here" if above_zero else "holds here")
    state = "fine-tuned, one seed" if trained else "without training"
    assert row["measured_on"] == f"{state}, 20 books"


def test_short_text(claims):
    """Open LLM by document: DPRoPE minus YaRN."""
    runs = by_setting("open_llm", trained=False)
    ours = runs["dprope", '{"n_hat": 40}', 2][-1]["by_document"]
    others = runs["yarn", "{}", 2][-1]["by_document"]
    groups = [100 * np.subtract(ours[name], others[name]) for name in ours]
    errors = [(error / len(groups), freedom) for error, freedom in map(of_sample, groups)]
    expected = at_95_per_cent(*estimate(np.mean([group.mean() for group in groups]), *errors))
    row = claims.loc["open_llm", "smollm2"]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(expected, rel=1e-3)


# All scores


def test_all_csv_prints_the_tables_as_results_readme_says(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (RESULTS / "README.md").read_text(), re.DOTALL)
    exec(code.replace("results/all.csv", str(RESULTS / "all.csv")), {})
    printed = capsys.readouterr().out
    assert re.search(r"^dprope +6\.71 +22\.95$", printed, re.MULTILINE)  # the paper's Table 3


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


def test_losses_of_all_csv_are_those_of_the_records(scores):
    """YaRN on SmolLM2 at s = 2, fine-tuned."""
    of = scores.loc["smollm2", "h200", "loss_by_position", "yarn", 2.0].set_index("metric")
    within, beyond = of_file("h200/loss_by_position/yarn_s=2_seed=0").T
    places = {"within L": within, "beyond L": beyond, "beyond minus within": beyond - within}
    for place, losses in places.items():
        found = of.loc[place, ["value", "low", "high"]].tolist()
        assert found == pytest.approx(student(losses), abs=2e-5)
