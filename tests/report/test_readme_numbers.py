"""README's numbers, computed again from the records and the paper's formulas with NumPy, pandas and
SciPy alone."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
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


def pages(links):
    """The text of the pages that links lead to."""
    files = [ROOT / target.partition("#")[0] for _, target in links]
    return "\n".join(file.read_text() for file in files if file.suffix == ".md")


def stands(number, text):
    return re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text)


def test_each_number_of_a_table_stands_in_the_page_that_it_leads_to(readme):
    """A number in a link, in that page; another, in a page that its row or its table's head leads
    to."""
    found = 0
    for table in re.findall(r"(?:^\|.*\n)+", readme[0], re.MULTILINE):
        head, _, *rows = table.splitlines()
        for row in rows:
            links = LINK.findall(row)
            for text, target in links:
                for number in PRINTED.findall(text):
                    assert stands(number, pages([(text, target)])), f"{number}: {target}"
            loose = PRINTED.findall(LINK.sub("", row))
            around = pages(links + LINK.findall(head))
            assert [number for number in loose if not stands(number, around)] == []
            found += len(loose) + len(links)
    assert found > 40


def numbers(text):
    return [
        float(each) for each in re.findall(r"-?\d+\.\d+", text.replace("−", "-").replace("+", ""))
    ]


def student(values):
    """Mean and Student's 95 % interval over texts."""
    return [
        values.mean(),
        *stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values)),
    ]


# Loss by position on 20 books


def by_book(method, folder="loss_by_position", end="s=2_books=20"):
    """Mean losses within and beyond L = 8,192, by book."""
    file = RESULTS / "smollm2/beyond" / folder / f"{method}_{end}.json"
    scores = json.loads(file.read_text())["scores"]
    losses = pd.DataFrame(scores["blocks"])
    edge = 8192 // scores["block"]
    assert losses.shape[1] == 20 and len(losses) == 2 * edge
    return losses[:edge].mean(), losses[edge:].mean()


ROWS = {
    "LongRoPE2's rule": "longrope2",
    "YaRN without blend": "dprope-covered",
    "DPRoPE at n̂ = 40": "dprope_n-hat=40",
    "DPRoPE at t = 0": "dprope",
    "PI:": "pi",
    "original:": "original",
}


@pytest.mark.parametrize("start", ROWS)
def test_methods_side_by_side(readme, start):
    (cells,) = (cells for first, cells in readme[1].items() if first.startswith(start))
    within, beyond = (ours - yarns for ours, yarns in zip(by_book(ROWS[start]), by_book("yarn")))
    for cell, gaps in zip(cells[1:], (within, beyond, beyond - within), strict=True):
        assert numbers(cell) == pytest.approx(student(gaps), abs=0.00051)


def test_temperatures(readme):
    """YaRN's 0.1·ln s + 1 and LongRoPE's √(1 + ln s/ln L), at s = 2 and L = 8,192."""
    yarns = f"{0.1 * np.log(2) + 1:.3f}"
    expected = {
        "YaRN:": yarns,
        "YaRN without blend": yarns,
        "LongRoPE2's rule": f"{np.sqrt(1 + np.log(2) / np.log(8192)):.3f}",
    }
    for start in (*ROWS, "YaRN:"):
        (cells,) = (cells for first, cells in readme[1].items() if first.startswith(start))
        assert cells[0] == expected.get(start, "none")


def test_least_change_beside_others_on_smollm2(readme):
    answer = readme[1]["Does DPRoPE at t = 0, which changes them least, have the least loss?"][0]
    within, beyond = (
        ours - others for ours, others in zip(by_book("dprope"), by_book("dprope_n-hat=40"))
    )
    _, pi = (ours - others for ours, others in zip(by_book("dprope"), by_book("pi")))
    expected = [*student(beyond), *student(within), *student(pi)]
    assert numbers(answer) == pytest.approx(expected, abs=0.00051)
    assert (beyond > 0).all() and "20 of 20 books" in answer


def test_the_papers_setting_beside_yarn_on_smollm2(readme):
    answer = readme[1]["Is DPRoPE better than YaRN?"][0]
    expected = [
        student(ours - yarns) for ours, yarns in zip(by_book("dprope_n-hat=40"), by_book("yarn"))
    ]
    assert numbers(answer)[:6] == pytest.approx(np.ravel(expected), abs=0.00051)
    for words, file in (("found ", "dprope_n-hat=40_s=2"), ("YaRN ", "yarn_s=2")):
        run = json.loads((RESULTS / f"smollm2/passkey/{file}.json").read_text())
        cells = [cell["mean"] for cell in run["scores"]["by_depth"]]
        assert f"{words}{sum(cells):.0f} of {len(cells)}" in answer


def test_fine_tuning_of_smollm2(readme):
    answer = numbers(readme[1]["What does fine-tuning change?"][0])
    after = by_book("yarn", folder="h200/loss_by_position", end="s=2_seed=0_books=20")
    gains = [student(tuned - plain) for tuned, plain in zip(after, by_book("yarn"))]
    assert answer[1:7] == pytest.approx(np.ravel(gains[::-1]), abs=0.00051)
    folder = RESULTS / "smollm2/beyond/h200/finetune"
    runs = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    losses = {run["run"]["method"]: np.array(run["scores"]["losses"]) for run in runs}
    steps = losses["dprope"] - losses["yarn"]
    assert {run["scores"]["tokens"] for run in runs} == {4_194_304} and answer[0] == 4.2
    assert len(steps) == 16
    assert answer[7:] == pytest.approx([steps[0], steps[-4:].mean()], abs=0.00051)


# Disturbances, by the released code's direction


def test_outcomes_are_those_of_the_table_of_claims(readme):
    table = pd.read_csv(RESULTS / "claims.csv")
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
            printed |= {(outcome, model) for model in re.findall(r"([^ ,]+) \(", models)}
        expected = zip(rows["outcome"].str.removesuffix(" here"), rows["model"].map(titles))
        assert printed == set(expected)


def test_a_claim_that_does_not_hold_says_against_which_rival_it_does(readme):
    """By the page of the claims: those whose every statement about the rival holds."""
    sections = (RESULTS / "claims.md").read_text().split("\n## ")[1:]
    said = {}
    for section in sections:
        claim = section.partition("\n")[0].split(". ", 1)[1]
        lines = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]
        found = pd.DataFrame(
            {
                "model": cells[0].split(",")[0],
                "rival": cells[2].partition(" minus ")[2],
                "difference": cells[3].split(" ")[0],
                "outcome": cells[6].strip("*").removesuffix(" here"),
            }
            for cells in lines
        )
        for _, of_model in found.groupby("model", sort=False) if len(found) else ():
            if (of_model["outcome"] == "does not hold").any():
                for rival, of_rival in of_model.groupby("rival"):
                    if rival and (of_rival["outcome"] == "holds").all():
                        said.setdefault((claim, rival), []).append(of_rival["difference"].iloc[0])
    printed = {
        (claim, rival): differences.split(", ")
        for claim, cells in readme[1].items()
        for rival, differences in re.findall(r"against ([^;]+) it holds \(([^)]+)\)", cells[0])
    }
    assert printed == said and len(said) > 1


def test_hours_are_those_of_the_records(readme):
    """Two chains of tiny's suite run at a time; copies of a record took no time."""
    runs = {file: json.loads(file.read_text()) for file in RESULTS.rglob("*.json")}
    timed = {
        file: run for file, run in runs.items() if "run" in run and "same_selection_as" not in run
    }
    tiny = (
        sum(
            run["environment"]["seconds"]
            for file, run in timed.items()
            if file.is_relative_to(RESULTS / "tiny")
        )
        / 2
    )
    assert re.search(r"MODEL=tiny` \((\d+) h\)", readme[0])[1] == f"{tiny / 3600:.0f}"
    cores = [
        (run["environment"]["seconds"], re.match(r"(\d+) × ", run["environment"]["device"]))
        for run in timed.values()
    ]
    hours = sum(seconds * int(count[1]) for seconds, count in cores if count) / 3600
    assert (
        re.search(r"at most (\d+) CPU-hours", (RESULTS / "README.md").read_text())[1]
        == f"{hours:.0f}"
    )
