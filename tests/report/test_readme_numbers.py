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


@pytest.fixture(scope="module")
def readme():
    """The text, and the cells of its tables by their first."""
    text = (ROOT / "README.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line[:2] == "| "
    ]
    return text, {row[0].strip(): row[1:] for row in rows}


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


def by_book(file):
    """Mean losses within and beyond L = 8,192, by book."""
    run = json.loads(
        (RESULTS / f"smollm2/beyond/loss_by_position/{file}_s=2_books=20.json").read_text()
    )
    losses, edge = pd.DataFrame(run["blocks"]), 8192 // run["block"]
    assert losses.shape[1] == 20 and len(losses) == 2 * edge
    return losses[:edge].mean(), losses[edge:].mean()


ROWS = {
    "LongRoPE2's rule": "longrope2",
    "DPRoPE, covered": "dprope-covered",
    "DPRoPE, the paper": "dprope_n-hat=40",
    "DPRoPE, least": "dprope",
    "PI:": "pi",
    "original:": "original",
}


@pytest.mark.parametrize("start", ROWS)
def test_methods_side_by_side(readme, start):
    (cells,) = (cells for first, cells in readme[1].items() if first.startswith(start))
    within, beyond = (ours - yarns for ours, yarns in zip(by_book(ROWS[start]), by_book("yarn")))
    for cell, gaps in zip(cells, (within, beyond, beyond - within), strict=True):
        assert numbers(cell) == pytest.approx(student(gaps), abs=0.00051)


def test_answers_on_smollm2(readme):
    least = readme[1]["Does the setting that changes them least read long texts best?"][0]
    within, beyond = (
        ours - others for ours, others in zip(by_book("dprope"), by_book("dprope_n-hat=40"))
    )
    assert numbers(least) == pytest.approx([*student(beyond), *student(within)], abs=0.00051)
    assert (beyond > 0).all() and "20 of 20 books" in least
    yarn = numbers(readme[1]["Is DPRoPE better than YaRN?"][0])
    expected = [
        student(ours - yarns) for ours, yarns in zip(by_book("dprope_n-hat=40"), by_book("yarn"))
    ]
    assert yarn[:6] == pytest.approx(np.ravel(expected), abs=0.00051)
    runs = [json.loads(file.read_text()) for file in (RESULTS / "smollm2").rglob("finetune/*.json")]
    losses = {run["method"]: np.array(run["losses"]) for run in runs if run["length"] == 16384}
    steps = losses["dprope"] - losses["yarn"]
    tokens = {run["tokens"] for run in runs if run["length"] == 16384}
    assert len(steps) == 16 and tokens == {4_194_304} and yarn[6] == 4.2
    assert yarn[7:] == pytest.approx([steps[0], steps[-4:].mean()], abs=0.00051)


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
            printed |= {(outcome, re.sub(r" \(.*", "", model)) for model in models.split(", ")}
        expected = zip(rows["outcome"].str.removesuffix(" here"), rows["model"].map(titles))
        assert printed == set(expected)


def test_hours_are_those_of_the_records(readme):
    """Two chains of tiny's suite run at a time; copies of a record took no time."""
    runs = {file: json.loads(file.read_text()) for file in RESULTS.rglob("*.json")}
    timed = {
        file: run
        for file, run in runs.items()
        if "seconds" in run and "same_selection_as" not in run
    }
    tiny = (
        sum(run["seconds"] for file, run in timed.items() if file.is_relative_to(RESULTS / "tiny"))
        / 2
    )
    assert re.search(r"MODEL=tiny` \((\d+) h\)", readme[0])[1] == f"{tiny / 3600:.0f}"
    cores = [
        (run["seconds"], re.match(r"(\d+) × ", run["environment"]["device"]))
        for run in timed.values()
    ]
    hours = sum(seconds * int(count[1]) for seconds, count in cores if count) / 3600
    assert (
        re.search(r"at most (\d+) CPU-hours", (RESULTS / "README.md").read_text())[1]
        == f"{hours:.0f}"
    )
