"""Numbers of README, of the claims and of results/all.csv, computed again from the records with
NumPy, pandas and SciPy alone."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests import files

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
L = {"tiny": 1024, "smollm2": 8192}
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


def student(values):
    """[mean, low, high] at 95 %."""
    return [values.mean(), *stats.ttest_1samp(values, 0).confidence_interval()]


# Records


def read(file):
    return files.read(RESULTS / file)


def by_book(model, name):
    """The loss within L and beyond it of each book, in the order of titles: [books, 2]."""
    scores = read(f"{model}/beyond/{name}.json")["scores"]
    blocks = pd.DataFrame(scores["blocks"])
    edge = L[model] // scores["block"]
    of = blocks.columns.str.replace(r" \(\d+\)$", "", regex=True)
    sides = [blocks[:edge].mean().groupby(of).mean(), blocks[edge:].mean().groupby(of).mean()]
    return np.array(sides).T


def losses_of(name, folder="loss_by_position"):
    """SmolLM2's losses within and beyond L on 20 books: [books, 2]."""
    losses = by_book("smollm2", f"{folder}/{name}_books=20")
    assert losses.shape == (20, 2)
    return losses


def keys_in(model, name):
    """A row for each key of a record, with its book and whether it lies beyond L."""
    keys = read(f"{model}/beyond/needles/{name}.json")["scores"]["keys"]
    frame = pd.DataFrame([{"book": book, **key} for book, of in keys.items() for key in of])
    return frame.assign(beyond=frame["distance"] > L[model])


def keys_of(name):
    """SmolLM2's nats a key within and beyond L in 20 books at s = 2: [books, 2]."""
    frame = keys_in("smollm2", f"{name}_books=20")
    nats = frame.pivot_table("nats", "book", "beyond")
    assert frame.groupby(["book", "beyond"]).size().eq(8).all() and len(nats) == 20
    return nats.to_numpy()


def losses_of_texts(name):
    """Of a record of SmolLM2's perplexity, the loss a token by window length and text."""
    windows = pd.DataFrame(read(f"smollm2/perplexity/{name}.json")["scores"]["by_window"]).T
    text, length, _ = zip(*windows.index.str.rsplit("/", n=2))
    sums = windows.groupby([np.array(length).astype(int), np.array(text)]).sum()
    return sums[0] / sums[1]


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


WITHIN = 0
BEYOND = 1
CHANGE = [-1, 1]  # what is beyond L minus what is within
FAR = [0, 1]
WARM = "attention-factor=1.0693"


@pytest.mark.parametrize(
    "row, name",
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
    for folder, of, digits in (("loss_by_position", losses_of, 3), ("needles", keys_of, 2)):
        file = RESULTS / "smollm2/beyond" / folder / f"{name}_books=20.json"
        gaps = of(name) - of("yarn_s=2") if file.exists() else None
        expected += [(gaps, WITHIN, digits), (gaps, BEYOND, digits)]
    for cell, (gaps, place, digits) in zip(readme[1][row], expected, strict=True):
        if gaps is None:
            assert cell == "–"
        else:
            assert numbers(cell) == pytest.approx(student(gaps[:, place]), abs=0.51 * 0.1**digits)


def test_the_attention_factor_is_yarns(readme):
    assert f"YaRN's attention factor, {0.1 * np.log(2) + 1:.3f}," in readme[0]


PAPERS = "dprope_n-hat=40_s=2"
WARM_PAPERS = f"dprope_{WARM}_n-hat=40_s=2"
TUNED, AGAIN = ([f"{name}_seed={seed}" for name in (PAPERS, "yarn_s=2")] for seed in (0, 1))


@pytest.mark.parametrize(
    "finding, differences",
    [
        ("The least change", [("dprope_s=2", "yarn_s=2", FAR), (PAPERS, "yarn_s=2", FAR)]),
        ("After a short fine-tune", [(*TUNED, FAR), (*AGAIN, FAR)]),
    ],
)
def test_findings_on_smollm2(readme, finding, differences):
    """Losses with their intervals, in the order in which they stand."""
    (item,) = re.findall(rf"\d\. \*\*{finding}[^\n]*(?:\n   [^\n]*)*", readme[0])
    printed = [numbers(text) for text, _ in LINK.findall(item.partition("By hidden numbers")[0])]
    expected = []
    for ours, other, sides in differences:
        expected.append(student((losses_of(ours) - losses_of(other)) @ sides))
    assert np.array(printed) == pytest.approx(np.array(expected), abs=0.00051)


def found(name, place):
    """Of SmolLM2's keys within L, or beyond it: "25 of 160"."""
    frame = keys_in("smollm2", f"{name}_books=20")
    side = frame["found"][frame["beyond"] == place]
    return f"{side.sum()} of {len(side)}"


def test_findings_on_keys(readme):
    retrieval, pays = (
        re.findall(rf"\d\. \*\*{start}[^\n]*(?:\n   [^\n]*)*", readme[0])[0]
        for start in ("Untrained, retrieval tells", "By loss alone")
    )
    yarn, bare, warm = "yarn_s=2", PAPERS, WARM_PAPERS
    last = "original_s=2_last"
    links = (text.replace("−", "-") for text, _ in LINK.findall(retrieval))
    printed = [text for text in links if PRINTED.match(text.lstrip("-"))]
    counts = [found(name, BEYOND) for name in (yarn, bare, warm)]
    assert [printed[0], printed[1], printed[3]] == counts
    gaps = [
        (keys_of(bare) - keys_of(yarn))[:, BEYOND],
        (keys_of(warm) - keys_of(yarn))[:, BEYOND],
    ]
    numbers_of = [numbers(printed[place]) for place in (2, 4)]
    assert np.array(numbers_of) == pytest.approx(np.array([*map(student, gaps)]), abs=0.0051)
    tuned = keys_of("yarn_s=2_seed=1")
    gap = (keys_of(f"{PAPERS}_seed=1") - tuned)[:, BEYOND]
    tuned_by_keys = readme[0].partition("By hidden numbers")[2].partition("\n4. ")[0]
    by_keys, pairs, *counts, unscaled = (text for text, _ in LINK.findall(tuned_by_keys))
    assert numbers(by_keys) == pytest.approx(student(gap), abs=0.0051)
    alike = (keys_of(f"{WARM_PAPERS}_seed=1") - tuned)[:, BEYOND]
    assert numbers(pairs) == pytest.approx(student(alike), abs=0.0051)
    assert counts == [found(f"{name}_seed=1", BEYOND) for name in (WARM_PAPERS, "yarn_s=2")]
    more = losses_of("original_s=2_seed=1") - losses_of("yarn_s=2_seed=1")
    assert float(unscaled) == pytest.approx(more[:, BEYOND].mean(), abs=0.0051)
    loss, *counts = [text for text, _ in LINK.findall(pays)]
    runs = last, "original_s=2_seed=1_last", yarn, "yarn_s=2_seed=1"
    assert counts == [found(last, BEYOND), *(found(run, WITHIN) for run in runs)]
    whole = losses_of_texts("yarn_s=2_whole")[16384]
    gap = whole - losses_of_texts("original_s=2_whole")[8192]
    assert (gap > 0).all() and len(gap) == 3
    assert float(loss) == pytest.approx(gap.mean(), abs=0.00051)


def test_longrope2s_rule_leads_on_tiny_by_keys_and_not_by_loss():
    """Minus YaRN, beyond L: the loss of 30 books, the keys of 39."""
    page = (RESULTS / "tiny/beyond/README.md").read_text()
    printed = re.search(r"the least beyond L at s = 2, ([^\]]+\])", page)[1]
    name = "loss_by_position/{}_s=2_books=30"
    gaps = np.subtract(*(by_book("tiny", name.format(each)) for each in ("longrope2", "yarn")))
    assert student(gaps[:, BEYOND])[1] > 0
    nats = {}
    for method in ("longrope2", "yarn", "pi", "dprope", "mrrope-pro", "dprope-covered"):
        frame = keys_in("tiny", f"{method}_s=2_books=39")
        nats[method] = frame[frame["beyond"]].groupby("book")["nats"].mean()
    gap = student(nats["longrope2"] - nats["yarn"])
    assert numbers(printed) == pytest.approx(gap, abs=0.0051)
    assert min(nats, key=lambda method: nats[method].mean()) == "longrope2"


def test_outcomes_are_those_of_the_table_of_claims(readme, claims):
    table = claims.reset_index()
    titles = {
        file.parent.name: read(file)["title"].split(" (")[0]
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
        record = read(file)
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
    assert re.search(r"some (\d+) CPU-hours", results)[1] == hours["cores"]


# The claims


@pytest.mark.parametrize(
    "key, ours, others, state",
    [
        ("perplexity", PAPERS, ["yarn_s=2", "pi_s=2"], "without training, by loss"),
        (
            "less_is_better",
            AGAIN[0],
            [AGAIN[1]],
            "fine-tuned, 1 sequence of each book, by loss, one seed",
        ),
    ],
)
def test_losses(claims, key, ours, others, state):
    """DPRoPE minus each rival that has such records, YaRN first; the number is that of YaRN."""
    of = {name: losses_of(name)[:, BEYOND] for name in (ours, *others)}
    gaps = [of[ours] - of[other] for other in others]
    row = claims.loc[key, "smollm2"]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(student(gaps[0]), rel=1e-4)
    # So sure of each sign that Bonferroni rejects zero for all, as Holm then does.
    assert max(stats.ttest_1samp(gap, 0).pvalue for gap in gaps) < 0.05 / len(gaps)
    above_zero = max(gap.mean() for gap in gaps) > 0
    assert row["outcome"] == ("does not hold here" if above_zero else "holds here")
    assert row["measured_on"] == f"{state}, 20 books"


def test_a_collapse_is_beside_yarns_change_on_the_same_books():
    change = (losses_of("original_s=2") - losses_of("yarn_s=2")) @ CHANGE
    place = "s = 2, beyond minus within | original minus YaRN"
    line = rf"^\| SmolLM2-135M, without training, .* {re.escape(place)} \|(.*)$"
    page = re.sub(" +", " ", (RESULTS / "claims.md").read_text().replace("−", "-"))
    row = re.search(line.replace("−", "-"), page, re.MULTILINE)[1]
    assert numbers(row)[:3] == pytest.approx(student(change), abs=0.00051)
    assert f"on {(change > 0).sum()} of 20 books" in row
    assert "**holds here**" in row


def of_papers_setting_and_yarn(experiment):
    """SmolLM2's scores at s = 2 without training."""
    return [read(f"smollm2/{experiment}/{name}.json")["scores"] for name in (PAPERS, "yarn_s=2")]


def test_short_text(claims):
    """Open LLM by document: DPRoPE minus YaRN, by Welch and Satterthwaite over benchmarks."""
    ours, others = (scores["by_document"] for scores in of_papers_setting_and_yarn("open_llm"))
    gaps = [100 * np.subtract(ours[name], others[name]) for name in ours]
    mean = np.mean([gap.mean() for gap in gaps])
    squares = np.array([stats.sem(gap) / len(gaps) for gap in gaps]) ** 2
    freedom = squares.sum() ** 2 / sum(squares**2 / [len(gap) - 1 for gap in gaps])
    interval = stats.t.interval(0.95, freedom, mean, np.sqrt(squares.sum()))
    row = claims.loc["open_llm", "smollm2"]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx([mean, *interval], rel=1e-3)


def test_ruler_is_over_tasks_at_the_extended_length(claims):
    both = of_papers_setting_and_yarn("ruler")
    ours, others = (scores["tasks"]["16384"] for scores in both)
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
    by_length = np.exp(losses_of_texts("yarn_s=2_whole").groupby(level=0).mean())
    line = rf"^yarn +{by_length[16384]:.2f} +{by_length[8192]:.2f}$"
    assert re.search(line, printed, re.MULTILINE)


def test_all_csv_has_every_record_with_scores(scores):
    found = set()
    for file in RESULTS.glob("*/**/*.json"):
        record = read(file)
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


@pytest.mark.parametrize("model", L)
def test_held_out_losses_of_all_csv_are_those_of_the_records(scores, model):
    """Of factors that were learned from YaRN's."""
    folder = RESULTS / model / "beyond"
    learned = [read(file) for file in folder.glob("learned/from=yarn_s=2_*.json")]
    ends = pd.DataFrame([run["scores"]["curve"][-1]["beyond"] for run in learned])["mean"]
    lines = scores.loc[model, "", "learned", "yarn", 2.0]
    line = lines[(lines["options"] == "") & (lines["metric"] == "beyond L")]
    assert line["value"].item() == pytest.approx(ends.mean(), rel=1e-5)


def test_losses_of_all_csv_are_those_of_the_records(scores):
    """YaRN on SmolLM2 at s = 2, fine-tuned."""
    of = scores.loc["smollm2", "h200", "loss_by_position", "yarn", 2.0].set_index("metric")
    within, beyond = losses_of("yarn_s=2_seed=0", "h200/loss_by_position").T
    places = {"within L": within, "beyond L": beyond, "beyond minus within": beyond - within}
    for place, losses in places.items():
        assert of.loc[place, ["value", "low", "high"]].tolist() == pytest.approx(
            student(losses), abs=2e-5
        )
