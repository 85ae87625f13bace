"""Numbers of README, of the claims and of results/all.csv, computed again from the records with
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
CONTEXT = {"tiny": 1024, "smollm2": 8192}
BOOKS = {"tiny": 30, "smollm2": 20}
N_HAT = {2: {"n_hat": 40}, 4: {"n_hat": 32}}  # 5/8 and 1/2 of 64
RIVALS = [("pi", {}), ("yarn", {})]
LINK = re.compile(r"\[((?:[^][]|\[[^]]*\])*)\]\(([^)]*)\)")  # its text, which may hold an interval
# A measured number with its interval, or a count.
PRINTED = re.compile(r"[+−]?\d+\.\d+(?: \[[^]]*\])?(?: %)?|\d+ of \d+")


@pytest.fixture(scope="module")
def readme():
    """The text, and the cells of its tables by their first, without links."""
    text = (ROOT / "README.md").read_text()
    rows = [
        [cell.strip() for cell in LINK.sub(r"\1", line).strip("|").split(" | ")]
        for line in text.splitlines()
        if line[:2] == "| "
    ]
    return text, {row[0].strip(): row[1:] for row in rows}


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


def by_book(scores, model):
    """The loss within L and beyond it of each book, in the order of titles: [books, 2]."""
    blocks = pd.DataFrame(scores["blocks"])
    edge = CONTEXT[model] // scores["block"]
    of = blocks.columns.str.replace(r" \(\d+\)$", "", regex=True)
    sides = [blocks[:edge].mean().groupby(of).mean(), blocks[edge:].mean().groupby(of).mean()]
    return np.array(sides).T


def of_smollm2(name):
    """Its losses within and beyond L on 20 books at s = 2: [books, 2]."""
    file = RESULTS / "smollm2/beyond" / f"{name}_books=20.json"
    losses = by_book(json.loads(file.read_text())["scores"], "smollm2")
    assert losses.shape == (20, 2)
    return losses


def untrained(method):
    return of_smollm2(f"loss_by_position/{method}_s=2")


def of_setting(experiment, method, options=None):
    """SmolLM2's scores at s = 2 without training."""
    runs = by_setting("smollm2", experiment, trained=False)
    return runs[method, json.dumps(options or {}), 2][-1]


# README


def pages(links):
    """The text of the pages that links lead to."""
    files = [ROOT / target.partition("#")[0] for _, target in links]
    return "\n".join(file.read_text() for file in files if file.suffix == ".md")


def stands(number, text):
    return re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text)


def test_each_number_stands_in_the_page_that_it_leads_to(readme):
    """A number in a link, in that page; another of a table, in a page that its row or the table's
    head leads to."""
    found = 0
    for text, target in LINK.findall(readme[0]):
        for number in PRINTED.findall(text) if ".md" in target else ():
            assert stands(number, pages([(text, target)])), f"{number}: {target}"
            found += 1
    for table in re.findall(r"(?:^\|.*\n)+", readme[0], re.MULTILINE):
        head, _, *rows = table.splitlines()
        for row in rows:
            loose = PRINTED.findall(LINK.sub("", row))
            around = pages(LINK.findall(row) + LINK.findall(head))
            assert [number for number in loose if not stands(number, around)] == []
            found += len(loose)
    assert found > 25


def keys_of(name):
    """SmolLM2's nats a key within and beyond L in 20 books at s = 2: [books, 2]."""
    file = RESULTS / "smollm2/beyond/needles" / f"{name}_books=20.json"
    keys = json.loads(file.read_text())["scores"]["keys"]
    rows = [{"book": book, **key} for book, of in keys.items() for key in of]
    frame = pd.DataFrame(rows).assign(beyond=lambda each: each["distance"] > CONTEXT["smollm2"])
    nats = frame.pivot_table("nats", "book", "beyond")
    assert frame.groupby(["book", "beyond"]).size().eq(8).all() and len(nats) == 20
    return nats.sort_index().to_numpy()


WITHIN = 0
BEYOND = 1
CHANGE = [-1, 1]  # what is beyond L minus what is within
FAR = [0, 1]
WARM = "attention-factor=1.0693"


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("LongRoPE2's rule", "longrope2_s=2"),
        ("DPRoPE (n̂ = 40), the experiments'", "dprope_n-hat=40_s=2"),
        ("– with YaRN's attention factor", f"dprope_{WARM}_n-hat=40_s=2"),
        ("DPRoPE (t = 0), the formula", "dprope_s=2"),
        ("unextended, the last 8k", "original_s=2_last"),
    ],
)
def test_methods_side_by_side(readme, row, name):
    """Loss and nats a key within L and beyond, less YaRN's; a dash where there is no record."""
    expected = []
    for folder, of, digits in (("loss_by_position", of_smollm2, 3), ("needles", keys_of, 2)):
        file = RESULTS / "smollm2/beyond" / folder / f"{name}_books=20.json"
        prefix = "loss_by_position/" if digits == 3 else ""
        gaps = of(f"{prefix}{name}") - of(f"{prefix}yarn_s=2") if file.exists() else None
        expected += [(gaps, WITHIN, digits), (gaps, BEYOND, digits)]
    for cell, (gaps, place, digits) in zip(readme[1][row], expected, strict=True):
        if gaps is None:
            assert cell == "–"
        else:
            assert numbers(cell) == pytest.approx(student(gaps[:, place]), abs=0.51 * 0.1**digits)


def rows_of_smollm2(heading):
    """The cells of the tables below a heading of its page beyond the paper, by their first."""
    page = (RESULTS / "smollm2/beyond/README.md").read_text()
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line[:1] == "|"]
    rows = [[cell.strip() for cell in cells] for cells in lines]
    return {row[0]: row[1:] for row in rows}


@pytest.mark.parametrize(
    ("row", "name"), [("DPRoPE (n̂ = 40)", "dprope_n-hat=40_s=2"), ("DPRoPE (t = 0)", "dprope_s=2")]
)
def test_fine_tuned_side_by_side(row, name):
    """Loss less fine-tuned YaRN's within L, beyond, and the change; what training changed within L,
    and beyond."""
    tuned, yarn = (of_smollm2(f"loss_by_position/{each}_seed=0") for each in (name, "yarn_s=2"))
    gaps = tuned - yarn
    changed = tuned - of_smollm2(f"loss_by_position/{name}")
    expected = (*gaps.T, gaps @ CHANGE, *changed.T)
    for cell, values in zip(rows_of_smollm2("Fine-tuned at L'")[row], expected, strict=True):
        assert numbers(cell) == pytest.approx(student(values), abs=0.00051)


def test_the_attention_factor_is_yarns(readme):
    assert f"YaRN's is {0.1 * np.log(2) + 1:.3f}." in readme[0]


PAPERS = "dprope_n-hat=40_s=2"
WARM_PAPERS = f"dprope_{WARM}_n-hat=40_s=2"
TUNED = [f"{name}_seed=0" for name in (PAPERS, "yarn_s=2")]


@pytest.mark.parametrize(
    ("finding", "differences"),
    [
        ("The least change", [("dprope_s=2", "yarn_s=2", FAR), (PAPERS, "yarn_s=2", FAR)]),
        ("After a short fine-tune", [(*TUNED, FAR), (*TUNED, CHANGE)]),
    ],
)
def test_findings_on_smollm2(readme, finding, differences):
    """Losses with their intervals, in the order in which they stand."""
    (item,) = re.findall(rf"\d\. \*\*{finding}[^\n]*(?:\n   [^\n]*)*", readme[0])
    printed = [numbers(text) for text, _ in LINK.findall(item)]
    expected = []
    for ours, other, sides in differences:
        gaps = of_smollm2(f"loss_by_position/{ours}") - of_smollm2(f"loss_by_position/{other}")
        expected.append(student(gaps @ sides))
    assert np.array(printed) == pytest.approx(np.array(expected), abs=0.00051)


def found(name, place):
    """Of SmolLM2's keys within L, or beyond it: "25 of 160"."""
    file = RESULTS / "smollm2/beyond/needles" / f"{name}_books=20.json"
    keys = json.loads(file.read_text())["scores"]["keys"].values()
    side = [key["found"] for of in keys for key in of if (key["distance"] > 8192) == bool(place)]
    return f"{sum(side)} of {len(side)}"


def test_findings_on_keys(readme):
    retrieval, pays = (
        re.findall(rf"\d\. \*\*{start}[^\n]*(?:\n   [^\n]*)*", readme[0])[0]
        for start in ("Retrieval tells", "By loss alone")
    )
    yarn, bare, warm = "yarn_s=2", PAPERS, WARM_PAPERS
    last, warm_last = "original_s=2_last", f"original_{WARM}_s=2_last"
    printed = [text.replace("−", "-") for text, _ in LINK.findall(retrieval)]
    counts = [found(name, BEYOND) for name in (yarn, bare, warm)]
    assert [printed[0], printed[1], printed[3]] == counts
    gaps = [
        (keys_of(bare) - keys_of(yarn))[:, BEYOND],
        (keys_of(warm) - keys_of(yarn))[:, BEYOND],
        (keys_of(warm_last) - keys_of(last))[:, WITHIN],
    ]
    numbers_of = [numbers(printed[place]) for place in (2, 4, 5)]
    assert np.array(numbers_of) == pytest.approx(np.array([*map(student, gaps)]), abs=0.0051)
    loss, *counts = [text for text, _ in LINK.findall(pays)]
    assert counts == [found(last, BEYOND), found(last, WITHIN), found(yarn, WITHIN)]
    by_window = []
    for method, length in (("yarn", 16384), ("original", 8192)):
        run = json.loads((RESULTS / f"smollm2/perplexity/{method}_s=2_whole.json").read_text())
        windows = pd.DataFrame(run["scores"]["by_window"]).T.set_axis(["loss", "tokens"], axis=1)
        text, lengths, _ = zip(*windows.index.str.rsplit("/", n=2))
        sums = windows.groupby([np.array(lengths).astype(int), np.array(text)]).sum().loc[length]
        by_window.append(sums["loss"] / sums["tokens"])
    gap = by_window[0] - by_window[1]
    assert (gap > 0).all() and len(gap) == 3
    assert float(loss) == pytest.approx(gap.mean(), abs=0.00051)


def test_the_rule_that_leads_on_smollm2_does_not_on_tiny_by_loss(readme):
    """Of LongRoPE2's rule minus YaRN on tiny, beyond L: the loss of 30 books, the keys of 39."""
    loss, keys = (numbers(text) for text, to in LINK.findall(readme[0]) if "results/tiny/b" in to)
    runs = by_setting("tiny", "loss_by_position", trained=False)
    ((rule, yarn),) = pair(runs, ("longrope2", {}), ("yarn", {}), 2)
    gaps = by_book(rule, "tiny") - by_book(yarn, "tiny")
    assert loss == pytest.approx(student(gaps[:, BEYOND]), abs=0.00051)
    nats = {}
    for method in ("longrope2", "yarn", "pi", "dprope", "mrrope-pro", "dprope-covered"):
        file = RESULTS / f"tiny/beyond/needles/{method}_s=2_books=39.json"
        frames = json.loads(file.read_text())["scores"]["keys"].values()
        nats[method] = pd.Series(
            [np.mean([key["nats"] for key in of if key["distance"] > 1024]) for of in frames]
        )
    assert keys == pytest.approx(student(nats["longrope2"] - nats["yarn"]), abs=0.0051)
    assert min(nats, key=lambda method: nats[method].mean()) == "longrope2"


def test_what_the_fine_tunes_decide_follows_from_their_interval():
    """By the rule on SmolLM2's page, which was fixed beforehand and has an upper end since."""
    ours, other = (of_smollm2(f"loss_by_position/{name}") for name in TUNED)
    _, low, high = student((ours - other)[:, BEYOND])
    expected = "not decided"
    if high < 0:
        expected = "DPRoPE extends better, fine-tuned"
    elif low >= 0.010:
        expected = "YaRN extends better, after 1 M tokens"
    elif -0.010 <= low <= high <= 0.010:
        less = "YaRN is ahead by less than matters"
        expected = less if low > 0 else "after training the choice is immaterial"
    page = (RESULTS / "smollm2/beyond/README.md").read_text()
    assert f"by loss: **{expected}**" in page


def outcome_of_keys(low, high, ours, other):
    """By the rule on SmolLM2's page, which was fixed beforehand."""
    if -0.5 <= low <= high <= 0.5:
        return "no difference that matters" if low <= 0 <= high else "differs by less than matters"
    if high < 0:
        return f"{ours} retrieves better"
    return f"{other} retrieves better" if low >= 0.5 else "not decided"


BARE_YARN = "yarn_attention-factor=1.0_s=2"


@pytest.mark.parametrize(
    ("row", "ours", "other", "names"),
    [
        ("n̂ = 40 minus YaRN, as they are published", PAPERS, "yarn_s=2", ("DPRoPE", "YaRN")),
        (
            "the same, both with the attention factor 1.069: the pairs alone",
            WARM_PAPERS,
            "yarn_s=2",
            ("DPRoPE's pairs", "YaRN's pairs"),
        ),
        (
            "the same, both without one (not planned)",
            PAPERS,
            BARE_YARN,
            ("DPRoPE's pairs", "YaRN's pairs"),
        ),
        ("t = 0 minus n̂ = 40: the least change", "dprope_s=2", PAPERS, ("t = 0", "n̂ = 40")),
        ("YaRN's", "yarn_s=2", BARE_YARN, None),
        ("DPRoPE's (n̂ = 40)", WARM_PAPERS, PAPERS, None),
        ("DPRoPE's (t = 0)", f"dprope_{WARM}_s=2", "dprope_s=2", None),
        (
            "not extended, the last 8k",
            f"original_{WARM}_s=2_last",
            "original_s=2_last",
            None,
        ),
    ],
)
def test_keys_on_the_page_and_what_they_decide(row, ours, other, names):
    """A row where both were measured: within L, beyond it, beyond minus within, and the outcome."""
    cells = rows_of_smollm2("Keys in books")[row]
    gaps = keys_of(ours) - keys_of(other)
    sides = (*gaps.T, gaps[:, BEYOND] - gaps[:, WITHIN])
    for cell, side in zip(cells, sides):
        assert numbers(cell) == pytest.approx(student(side), abs=0.0051)
    if names:
        _, low, high = student(gaps[:, BEYOND])
        assert cells[3] == f"**{outcome_of_keys(low, high, *names)}**"


def test_what_half_precision_changes_of_keys():
    """On two books, minus the same in float32."""
    needles = RESULTS / "smollm2/beyond/needles"
    half, full = (
        json.loads((needles / f"yarn_s=2_books={count}.json").read_text()) for count in (20, 2)
    )
    assert (half["run"]["dtype"], full["run"]["dtype"]) == ("bfloat16", "float32")
    page = (RESULTS / "smollm2/beyond/README.md").read_text()
    printed = numbers(page.partition("It was bfloat16:")[2].partition(", so a single")[0])
    sides = []
    for place in (BEYOND, WITHIN):
        for book, keys in full["scores"]["keys"].items():
            others = half["scores"]["keys"][book]
            side = [(key["distance"] > 8192) == bool(place) for key in keys]
            gaps = [other["nats"] - key["nats"] for other, key in zip(others, keys)]
            sides.append(np.array(gaps)[side].mean())
    assert printed == pytest.approx(sides, abs=0.0051)


def test_outcomes_are_those_of_the_table_of_claims(readme, claims):
    table = claims.reset_index()
    titles = {
        file.parent.name: json.loads(file.read_text())["title"].split(" (")[0]
        for file in RESULTS.glob("*/model.json")
    }
    shown = [claim for claim in table["claim"].unique() if claim in readme[1]]
    assert len(shown) > 3
    for claim in shown:
        rows = table[table["claim"] == claim]
        printed = set()
        for outcome, models in re.findall(r"\*\*([^*]+)\*\*: ([^;]+)", readme[1][claim][0]):
            names = re.sub(r" \([^)]*\)", "", models).strip().split(", ")
            printed |= {(outcome, model) for model in names}
        expected = zip(rows["outcome"].str.removesuffix(" here"), rows["model"].map(titles))
        assert printed == set(expected)


def test_hours_are_those_of_the_records(readme):
    """Two chains of tiny's suite run at a time."""
    all_seconds = {"tiny": 0.0, "cores": 0.0}
    for file in RESULTS.rglob("*.json"):
        record = json.loads(file.read_text())
        if "run" not in record:
            continue
        seconds = record["environment"]["seconds"]
        if file.is_relative_to(RESULTS / "tiny"):
            all_seconds["tiny"] += seconds / 2
        if cores := re.match(r"(\d+) × ", record["environment"]["device"]):
            all_seconds["cores"] += seconds * int(cores[1])
    hours = {name: f"{seconds / 3600:.0f}" for name, seconds in all_seconds.items()}
    results = (RESULTS / "README.md").read_text()
    assert re.search(r"MODEL=tiny` \((\d+) h\)", readme[0])[1] == hours["tiny"]
    assert re.search(r"at most (\d+) CPU-hours", results)[1] == hours["cores"]


# The claims


@pytest.mark.parametrize("key", ["perplexity", "less_is_better"])
def test_losses(claims, key):
    """The paper's perplexities are without training; the number that tells most of the rest is of
    fine-tunes where t = 0 is one."""
    ours = ("dprope", N_HAT[2] if key == "perplexity" else {})
    rivals = RIVALS
    fine_tuned = by_setting("smollm2", "loss_by_position", trained=True)
    trained = key == "less_is_better" and ("dprope", "{}", 2.0) in fine_tuned
    runs = fine_tuned if trained else by_setting("smollm2", "loss_by_position", trained=False)
    family = {}
    for rival in rivals:
        for own, other in pair(runs, ours, rival, 2):
            gaps = (by_book(own, "smollm2") - by_book(other, "smollm2"))[:, BEYOND]
            family[rival[0]] = estimate(gaps.mean(), of_sample(gaps))
    row = claims.loc[key, "smollm2"]
    expected = at_95_per_cent(*family["yarn"])
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(expected, rel=1e-4)
    # So sure of each sign that Bonferroni rejects zero for all, as Holm then does.
    for mean, error, freedom in family.values():
        assert 2 * stats.t.sf(abs(mean) / error, freedom) < 0.05 / len(family)
    above_zero = any(mean > 0 for mean, _, _ in family.values())
    assert row["outcome"] == ("does not hold here" if above_zero else "holds here")
    state = "fine-tuned, by loss, one seed" if trained else "without training, by loss"
    assert row["measured_on"] == f"{state}, 20 books"


def test_a_collapse_is_beside_yarns_change_on_the_same_books():
    runs = by_setting("smollm2", "loss_by_position", trained=False)
    ((original, yarn),) = pair(runs, ("original", {}), ("yarn", {}), 2)
    change = np.diff(by_book(original, "smollm2") - by_book(yarn, "smollm2")).ravel()
    place = "s = 2, beyond minus within | original minus YaRN"
    line = rf"^\| SmolLM2-135M, without training, .* {re.escape(place)} \|(.*)$"
    page = re.sub(" +", " ", (RESULTS / "claims.md").read_text().replace("−", "-"))
    row = re.search(line.replace("−", "-"), page, re.MULTILINE)[1]
    assert numbers(row)[:3] == pytest.approx(student(change), abs=0.00051)
    assert f"on {(change > 0).sum()} of 20 books" in row
    assert "**holds here**" in row


def test_short_text(claims):
    """Open LLM by document: DPRoPE minus YaRN."""
    ours = of_setting("open_llm", "dprope", N_HAT[2])["by_document"]
    others = of_setting("open_llm", "yarn")["by_document"]
    groups = [100 * np.subtract(ours[name], others[name]) for name in ours]
    errors = [(error / len(groups), freedom) for error, freedom in map(of_sample, groups)]
    expected = at_95_per_cent(*estimate(np.mean([group.mean() for group in groups]), *errors))
    row = claims.loc["open_llm", "smollm2"]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(expected, rel=1e-3)


def test_ruler_is_over_tasks_at_the_extended_length(claims):
    ours = of_setting("ruler", "dprope", N_HAT[2])["tasks"]["16384"]
    others = of_setting("ruler", "yarn")["tasks"]["16384"]
    gaps = np.array([ours[task]["mean"] - others[task]["mean"] for task in ours])
    row = claims.loc["ruler", "smollm2"]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(student(gaps), rel=1e-3)
    assert row["measured_on"] == "without training, 13 tasks"


# All scores


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
    line = rf"^yarn +{by_length[16384]:.2f} +{by_length[8192]:.2f}$"
    assert re.search(line, printed, re.MULTILINE)


def test_all_csv_has_every_record_with_scores(scores):
    found = set()
    for file in RESULTS.glob("*/**/*.json"):
        record = json.loads(file.read_text())
        if file.name == "model.json" or record["run"]["experiment"] == "finetune":
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


def test_losses_of_all_csv_are_those_of_the_records(scores):
    """YaRN on SmolLM2 at s = 2, fine-tuned."""
    of = scores.loc["smollm2", "h200", "loss_by_position", "yarn", 2.0].set_index("metric")
    within, beyond = of_smollm2("h200/loss_by_position/yarn_s=2_seed=0").T
    places = {"within L": within, "beyond L": beyond, "beyond minus within": beyond - within}
    for place, losses in places.items():
        found = of.loc[place, ["value", "low", "high"]].tolist()
        assert found == pytest.approx(student(losses), abs=2e-5)
