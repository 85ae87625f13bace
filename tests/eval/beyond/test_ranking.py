"""What losses and keys on the same texts say, against SciPy and by cases worked by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from core import ORIGINAL
from core.setting import Setting
from eval.beyond.ranking import GUESS, KEYS, LOSS, Row, facts, ranked, table, verdict

L = 1024
METHOD = Setting("pi")
LAST = Setting(ORIGINAL, last=L)


def row(name, loss, nats=None, setting=METHOD):
    """A row with a loss, and with nats a key, beyond L of each text; within L they are 1."""
    texts = [{"loss_within": 1.0, "loss_beyond": float(each)} for each in loss]
    for of_text, each in zip(texts, [] if nats is None else nats):
        counts = {"found_within": 2.0, "found_beyond": 1.0, "keys_within": 2.0, "keys_beyond": 2.0}
        of_text |= {"nats_within": 1.0, "nats_beyond": float(each)} | counts
    return Row(name, setting, texts)


def as_it_is(loss, nats=None):
    return row("as it is, last L", loss, nats, LAST)


def near(mean, count=6):
    """So many numbers that vary little around a mean."""
    return mean + 0.001 * np.array([1, -1, 2, -2, 0.5, -0.5][:count])


def test_methods_are_level_if_the_interval_of_their_difference_holds_zero():
    losses = {"a": [1.0, 1.1, 0.9, 1.3, 0.8], "b": [1.0] * 5, "c": [2.0, 2.1, 2.0, 2.1, 2.0]}
    ranking = ranked([row(name, loss) for name, loss in losses.items()])
    assert [each.name for each in ranking.methods] == ["b", "a", "c"]
    assert [each.name for each in ranking.level] == ["a"]
    for line in facts(ranking)[1:]:
        interval = stats.ttest_rel(losses[line["method"]], losses["b"]).confidence_interval()
        assert (line["gap_low"], line["gap_high"]) == pytest.approx(tuple(interval))
    said = " ".join(verdict(ranking, L))
    assert "First of 3 methods" in said and "no more than chance" in said


def test_parts_of_one_book_are_no_sample_of_books():
    """They decide neither the order, nor whether to extend."""
    whole = [
        row("a", near(1.0), near(3.0)),
        row("b", near(2.0), near(9.0)),
        as_it_is(near(3.0), near(20.0)),
    ]
    for books, by in ((1, LOSS), (6, KEYS)):
        ranking = ranked([replace(each, books=books) for each in whole])
        assert ranking.by == by
        known = [line["gap_low"] is not None for line in facts(ranking)]
        assert known == [books == 6] * 3
        said = " ".join(verdict(ranking, L))
        assert ("do not tell whether to extend it" in said) == (books == 1)
        assert ("[" in said) == (books == 6)


def test_few_texts_decide_nothing():
    rows = [row("a", [2.0], [1.0]), row("b", [1.0], [9.0]), as_it_is([3.0], [20.0])]
    ranking = ranked(rows)
    assert ranking.by == LOSS and ranking.methods[0].name == "b"
    said = " ".join(verdict(ranking, L))
    assert "do not tell whether to extend it" in said and "chance" in said
    assert [line["gap_low"] for line in facts(ranking)] == [None] * 3


# nats of the best, the middle and the worst method, and what then ranks
DECIDES = {
    "far apart, and better than a guess": ((3.0, 6.0, 9.0), KEYS),
    "all find them": ((0.1, 0.3, 9.0), LOSS),
    "no better than a guess": ((GUESS, 15.0, 20.0), LOSS),
}


@pytest.mark.parametrize("nats, by", DECIDES.values(), ids=DECIDES)
def test_keys_rank_where_they_tell_methods_apart(nats, by):
    rows = [row(f"m{number}", near(9 - number), near(each)) for number, each in enumerate(nats)]
    ranking = ranked(rows)
    assert ranking.by == by
    assert ranking.methods[0].name == ("m0" if by == KEYS else "m2")
    assert [ranked(rows, forced).by for forced in (KEYS, LOSS)] == [KEYS, LOSS]


# loss and nats a key of the best method, of the model as it is, and the words of the verdict
CASES = {
    "nothing is bought": (
        (3.02, 11.6),
        (3.0, 14.0),
        ("Do not extend it by a", "back or for a lower"),
    ),
    "keys alone": (
        (3.02, 2.0),
        (3.0, 14.0),
        ("Extend it by a to find", "Do not extend it by a for a lower"),
    ),
    "both": ((2.9, 2.0), (3.0, 14.0), ("Extend it by a to find", "back and for a lower")),
    "less than matters": (
        (2.995, 11.2),
        (3.0, 14.0),
        ("Do not extend it by a", "back or for a lower"),
    ),
}


@pytest.mark.parametrize("ours, before, words", CASES.values(), ids=CASES)
def test_the_verdict_says_whether_to_extend_and_for_what(ours, before, words):
    methods = [row("a", near(ours[0]), near(ours[1])), row("b", near(5.0), near(15.0))]
    said = verdict(ranked([*methods, as_it_is(near(before[0]), near(before[1]))]), L)
    for each in words:
        assert each in " ".join(said[:2])
    assert "do not tell" not in " ".join(said)
    assert "On prompts within L a costs no more than chance: +0.0000" in said[-1]
    assert "Of keys within L it finds" in said[-1]


def test_the_model_as_it_is_is_the_better_of_two_where_a_guess_is_the_most_that_a_key_costs():
    """The first is sure of wrong digits in two texts, and finds the keys of the others."""
    before = [row("as it is", near(3.0), nats, LAST) for nats in ([2, 2, 2, 40, 40, 2], near(11))]
    ours = row("a", near(3.0), near(9.0))
    said = [verdict(ranked([ours, *rows]), L)[0] for rows in (before, before[:1])]
    assert said[0] == said[1] and not said[0].startswith("Extend")


def test_what_the_texts_leave_open_is_said_to_be_open():
    wide = 3.0 + np.array([0.3, -0.4, 0.2, -0.3, 0.1, 0.0])
    said = verdict(ranked([row("a", wide), as_it_is([3.0] * 6)]), L)
    assert said[0].startswith("These texts do not tell whether to extend it by a for a lower loss")


def test_a_ranking_without_keys_has_no_column_of_them():
    ranking = ranked([row("a", [1.0] * 5), row("b", [2.0] * 5)])
    assert "nats a key" not in table(ranking)
