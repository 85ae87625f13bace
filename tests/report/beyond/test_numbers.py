"""Numbers of SmolLM2's page beyond the paper, computed again from the records, and what they
decide."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.beyond import decision
from analysis.scores import Score
from records import RESULTS
from tests.report.test_numbers import (
    AGAIN,
    BEYOND,
    CHANGE,
    PAPERS,
    TUNED,
    WARM,
    WARM_PAPERS,
    WITHIN,
    keys_in,
    keys_of,
    losses_of,
    numbers,
    read,
    student,
)

PAGE = (RESULTS / "smollm2/beyond/README.md").read_text()
SECOND_ROUND = PAGE.partition("### The second round\n")[2].partition("\n## ")[0]
BARE_YARN = "yarn_attention-factor=1.0_s=2"
PAIRS = ("DPRoPE's choice", "YaRN's choice")


def blocks_of(name):
    """The losses of SmolLM2's record on 20 books: a column for each."""
    file = f"smollm2/beyond/loss_by_position/{name}_books=20.json"
    return pd.DataFrame(read(file)["scores"]["blocks"])


def cells(heading, row):
    """Of the row of this name in the tables below a heading."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = re.search(rf"^\| {re.escape(row)} *\|(.*)\|$", section, re.MULTILINE)[1]
    return [cell.strip() for cell in found.split("|")]


@pytest.mark.parametrize(
    "row, name", [("DPRoPE (n̂ = 40)", PAPERS), ("DPRoPE (t = 0)", "dprope_s=2")]
)
def test_fine_tuned_side_by_side(row, name):
    """Loss less fine-tuned YaRN's within L, beyond, and the change; what training changed within L,
    and beyond."""
    tuned = losses_of(f"{name}_seed=0")
    gaps = tuned - losses_of("yarn_s=2_seed=0")
    expected = (*gaps.T, gaps @ CHANGE, *(tuned - losses_of(name)).T)
    for cell, values in zip(cells("Fine-tuned at L'", row), expected, strict=True):
        assert numbers(cell) == pytest.approx(student(values), abs=0.00051)


def test_what_the_fine_tunes_decide_follows_from_their_interval():
    """By the rule that was fixed beforehand; in the second round, too."""
    for (ours, other), page in ((TUNED, PAGE), (AGAIN, SECOND_ROUND)):
        gaps = losses_of(ours) - losses_of(other)
        outcome = decision.by_loss(Score(*student(gaps[:, BEYOND])))
        assert f"by loss: **{outcome}**" in " ".join(page.split())


@pytest.mark.parametrize(
    "row, name, of, digits",
    [
        ("YaRN", "yarn_s=2", losses_of, 3),
        ("DPRoPE (n̂ = 40)", PAPERS, losses_of, 3),
        ("original", "original_s=2", losses_of, 3),
        ("DPRoPE (n̂ = 40), attention × 1.0693", WARM_PAPERS, losses_of, 3),
        ("DPRoPE (n̂ = 40), attention × 1.0693", WARM_PAPERS, keys_of, 2),
        ("YaRN", "yarn_s=2", keys_of, 2),
        ("DPRoPE (n̂ = 40)", PAPERS, keys_of, 2),
        ("original", "original_s=2", keys_of, 2),
    ],
)
def test_second_round(row, name, of, digits):
    """Losses, or nats a key, within L and beyond; less fine-tuned YaRN's within L, beyond, and the
    change; what training changed within L, and beyond."""
    tuned = of(f"{name}_seed=1")
    gaps = tuned - of("yarn_s=2_seed=1")
    expected = (*tuned.T, *gaps.T, gaps @ CHANGE, *(tuned - of(name)).T)
    tables = re.findall(rf"^\| {re.escape(row)} +\| +1 \|(.*)\|$", SECOND_ROUND, re.MULTILINE)
    shown = tables[-1 if of is keys_of else 0].split("|")
    for cell, values in zip(shown, expected, strict=True):
        if values.any():
            assert numbers(cell) == pytest.approx(student(values), abs=0.51 * 0.1**digits)
        else:
            assert cell.strip() == "–"


def test_what_training_without_scaling_changed_of_losses():
    """Its share of what YaRN's gained within L; what others changed there minus that; what it
    gained beyond; its losses within L and beyond, less YaRN's, untrained and trained."""
    untrained, tuned, yarns = (
        losses_of(name) for name in ("original_s=2", "original_s=2_seed=1", "yarn_s=2_seed=1")
    )
    of_papers = losses_of(f"{PAPERS}_seed=1") - losses_of(PAPERS)
    gained, of_yarns = untrained - tuned, losses_of("yarn_s=2") - yarns
    section = SECOND_ROUND.partition("**More than half of")[2].partition(" Reading all 16k")[0]
    share, fell = re.search(r"too\*\*: (\d+) %.* fell by ([\d.]+)\. ", section, re.DOTALL).groups()
    assert float(share) == round(100 * gained[:, WITHIN].mean() / of_yarns[:, WITHIN].mean())
    assert float(fell) == pytest.approx(gained[:, BEYOND].mean(), abs=0.00051)
    gaps = untrained - losses_of("yarn_s=2"), tuned - yarns
    apart = (gained - of_yarns)[:, WITHIN], (of_papers + gained)[:, WITHIN]
    expected = *apart, *(gap[:, WITHIN] for gap in gaps), *(gap[:, BEYOND] for gap in gaps[::-1])
    shown = re.findall(r"[+−]\d+\.\d+ \[[^]]+\]", section)
    for cell, values in zip(shown, expected, strict=True):
        assert numbers(cell) == pytest.approx(student(values), abs=0.00051)


def test_what_training_without_scaling_changed_of_keys():
    """Within L, read on the last 8k; what it changed of others' minus that; and its keys beyond L
    on 16k, less YaRN's."""
    alone = keys_of("original_s=2_seed=1_last") - keys_of("original_s=2_last")
    yarns, papers = (keys_of(f"{name}_seed=1") - keys_of(name) for name in ("yarn_s=2", PAPERS))
    unscaled = keys_of("original_s=2_seed=1") - keys_of("yarn_s=2_seed=1")
    within = [values[:, WITHIN] for values in (alone, yarns - alone, papers - alone)]
    expected = [*within, unscaled[:, BEYOND]]
    section = SECOND_ROUND.partition("**That YaRN's")[2].partition("\n- The [paper's")[0]
    shown = re.findall(r"[+−]\d+\.\d{2} \[[^]]+\]", section)
    for cell, values in zip(shown, expected, strict=True):
        assert numbers(cell) == pytest.approx(student(values), abs=0.0051)


AS_PUBLISHED = "n̂ = 40 minus YaRN, as they are published"
PAIRS_ALONE = "the same, both with the attention factor 1.069: the pairs alone"
PUBLISHED = ("DPRoPE", "YaRN")


@pytest.mark.parametrize(
    "heading, seed, row, ours, other, names",
    [
        *(
            (heading, seed, row, *compared)
            for heading, seed in (
                ("Keys in books", ""),
                ("Pairs or attention factor?", "_seed=1"),
            )
            for row, compared in (
                (AS_PUBLISHED, (PAPERS, "yarn_s=2", PUBLISHED)),
                (PAIRS_ALONE, (WARM_PAPERS, "yarn_s=2", PAIRS)),
            )
        ),
        (
            "Pairs or attention factor?",
            "_seed=1",
            "n̂ = 40: 1.069 minus none",
            WARM_PAPERS,
            PAPERS,
            ("DPRoPE with it", "DPRoPE without it"),
        ),
        *(
            ("Keys in books", "", *compared)
            for compared in (
                ("the same, both without one (not planned)", PAPERS, BARE_YARN, PAIRS),
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
                (
                    "the same, 1.15 minus none",
                    "original_attention-factor=1.15_s=2_last",
                    "original_s=2_last",
                    None,
                ),
            )
        ),
    ],
)
def test_keys_on_the_page_and_what_they_decide(heading, seed, row, ours, other, names):
    """A row where both were measured: within L, beyond it, beyond minus within, and the outcome."""
    shown = cells(heading, row)
    gaps = keys_of(f"{ours}{seed}") - keys_of(f"{other}{seed}")
    for cell, side in zip(shown, (*gaps.T, gaps @ CHANGE)):
        assert numbers(cell) == pytest.approx(student(side), abs=0.0051)
    if names:
        outcome = decision.by_keys(Score(*student(gaps[:, BEYOND])), *names)
        assert shown[3] == f"**{outcome}**"


def test_losses_of_the_pairs_alone_after_training():
    losses = losses_of(f"{WARM_PAPERS}_seed=1") - losses_of("yarn_s=2_seed=1")
    by_loss = PAGE.partition("The pairs alone, n̂ = 40 minus YaRN: ")[2].partition("\n")[0]
    printed = re.findall(r"[+−]?\d+\.\d+ \[[^]]+\]", by_loss)
    for cell, place in zip(printed, (BEYOND, WITHIN), strict=True):
        assert numbers(cell) == pytest.approx(student(losses[:, place]), abs=0.00051)


def test_losses_by_position_of_both_rounds():
    """n̂ = 40 minus YaRN in three parts of the text, and the slope of each book by least squares."""
    for seed, column in ((0, 0), (1, 1)):
        ours, other = (blocks_of(f"{name}_seed={seed}") for name in (PAPERS, "yarn_s=2"))
        gaps = (ours - other).to_numpy()  # [blocks, books]
        part = len(gaps) // 4
        parts = {"0–8k": gaps[: 2 * part], "8–12k": gaps[2 * part : 3 * part]}
        parts["12–16k"] = gaps[3 * part :]
        expected = {name: of.mean(axis=0) for name, of in parts.items()}
        place = np.arange(len(gaps)) / len(gaps)
        expected["from beginning to end"] = np.array(
            [stats.linregress(place, of_book).slope for of_book in gaps.T]
        )
        for name, values in expected.items():
            cell = cells("Fine-tuned at L'", name)[column]
            assert numbers(cell) == pytest.approx(student(values), abs=0.000051)


def test_keys_by_distance():
    """n̂ = 40 minus YaRN at each key beyond L: untrained, with YaRN's attention factor, after
    training, and with both. By Bonferroni over the last three, YaRN is ahead at three keys and then
    DPRoPE at three."""

    def by_key(name, what):
        frame = keys_in("smollm2", f"{name}_books=20")
        frame["key"] = frame.groupby("book")["distance"].rank().astype(int)
        return frame[frame["beyond"]].pivot(index="book", columns="key", values=what)

    pairs = [
        (PAPERS, "yarn_s=2"),
        (WARM_PAPERS, "yarn_s=2"),
        (f"{PAPERS}_seed=1", "yarn_s=2_seed=1"),
        (f"{WARM_PAPERS}_seed=1", "yarn_s=2_seed=1"),
    ]
    gaps = [by_key(ours, "nats") - by_key(other, "nats") for ours, other in pairs]
    distances = by_key("yarn_s=2", "distance").mean() / 1024
    section = PAGE.partition("### By distance\n")[2]
    rows = re.findall(r"^\| (1?\d\.\dk) +\|(.*)\|$", section, re.MULTILINE)
    assert len(rows) == 8
    for (distance, cells_of), key in zip(rows, gaps[0].columns, strict=True):
        assert float(distance[:-1]) == pytest.approx(distances[key], abs=0.051)
        for cell, gap in zip(cells_of.split("|"), gaps, strict=True):
            assert numbers(cell) == pytest.approx(student(gap[key]), abs=0.0051)
    for gap in gaps[1:]:
        tests = [stats.ttest_1samp(gap[key], 0) for key in gap]
        assert [test.statistic > 0 for test in tests[:6]] == [True] * 3 + [False] * 3
        assert max(test.pvalue for test in tests[:6]) < 0.05 / 24
