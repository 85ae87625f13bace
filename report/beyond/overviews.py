"""The tables of pages beyond the paper that no table of tables/beyond/ has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.beyond import decision, loss_by_position, needles, training
from analysis.beyond.books import BEYOND, PLACES, WITHIN
from analysis.scores import number
from analysis.settings import BASELINE
from core.setting import tokens
from report.beyond import model_view as of
from report.beyond.model_view import OnBooks
from report.model_view import View, offered, shown, table
from tables.kit.markdown import text
from tables.kit.table import NONE

LOSS_DIGITS = 3
KEY_DIGITS = 2
SIDES = (WITHIN, BEYOND)


class Compared(NamedTuple):
    """A row of a table of differences: its first cell, a setting, and what it is compared with."""

    words: str
    ours: str
    other: str = BASELINE

    @classmethod
    def of(cls, row: str | Sequence[str]) -> Compared:
        """From what a template states: the three, or the setting alone."""
        return cls(text(row), row) if isinstance(row, str) else cls(*row)


def _differences(
    books: OnBooks, row: Compared, digits: int, places: Collection[str] = PLACES
) -> list[str]:
    """A row's difference in each place; dashes where a setting was not measured, or the two are
    one."""
    if row.ours == row.other or not {row.ours, row.other} <= {*books.names}:
        return [NONE] * len(places)
    return [shown(books.gap(row.ours, row.other, where), digits, True) for where in places]


@offered
def ranking(view: View, factor: float | None = None) -> str:
    """All methods without training, the least loss beyond L first."""
    names = [name for name, _ in of.ranked(view, factor)]
    return _table_of_differences(of.losses(view, factor), "loss minus YaRN's", names, LOSS_DIGITS)


@offered
def changes_beyond(view: View, heading: str, rows: Sequence[Sequence[str]]) -> str:
    """Differences of loss beyond L without training, each row as :class:`Compared` has it."""
    columns = {BEYOND: "what it changes of the loss beyond L"}
    return _table_of_differences(of.losses(view), heading, rows, LOSS_DIGITS, columns)


@offered
def sample_differences(view: View, heading: str, rows: Sequence) -> str:
    """The same in each place, on the texts that are enough for a sample."""
    return _table_of_differences(of.sample(view), heading, rows, LOSS_DIGITS)


@offered
def key_differences(view: View, heading: str, rows: Sequence) -> str:
    """The same of nats a key."""
    return _table_of_differences(of.keys(view), heading, rows, KEY_DIGITS)


def _table_of_differences(
    books: OnBooks, heading: str, rows: Sequence, digits: int, columns: Mapping | None = None
) -> str:
    """A row for each difference; by default a column for each place."""
    columns = columns or dict(zip(PLACES, PLACES))
    compared = map(Compared.of, rows)
    cells = [(row.words, *_differences(books, row, digits, columns)) for row in compared]
    return table((heading, *columns.values()), cells)


@offered
def key_outcomes(
    view: View, rows: Sequence[tuple[str, str, str, str, str]], fine_tuned: bool = False
) -> str:
    """What differences of nats a key decide, by the rule, untrained or of the second round of
    fine-tunes; a row states the names of both sides for its outcome, too."""
    books = _of_keys(view, fine_tuned)
    lines = []
    for words, ours, other, our_name, other_name in rows:
        outcome = decision.by_keys(books.gap(ours, other), our_name, other_name)
        differences = _differences(books, Compared(words, ours, other), KEY_DIGITS)
        lines.append((words, *differences, f"**{outcome}**"))
    return table(("compared", *PLACES, "outcome"), lines)


def _of_keys(view: View, fine_tuned: bool) -> OnBooks:
    """Those of the second round of fine-tunes, or untrained."""
    return of.second_round(view, of_keys=True) if fine_tuned else of.keys(view)


@offered
def keys_by_distance(view: View, columns: Sequence[tuple[str, str, str, bool]]) -> str:
    """Differences of nats a key at each distance beyond L, the nearest first.

    Args:
        columns: of each its head, the two settings, and whether they are those of the second round
            of fine-tunes or untrained.
    """
    run = of.keys(view).row(BASELINE).first
    rows = []
    for number_of_key in needles.nearest_beyond(run):
        cells = [f"{needles.distances(run)[number_of_key] / 1024:.1f}k"]
        for _, ours, other, fine_tuned in columns:
            gap = _of_keys(view, fine_tuned).gap(ours, other, number_of_key)
            cells.append(shown(gap, KEY_DIGITS, True))
        rows.append(cells)
    return table(("before the question", *(head for head, *_ in columns)), rows)


@offered
def by_loss_and_keys(view: View, compared: Sequence) -> str:
    """README's: losses and nats a key without training, minus YaRN's, within L and beyond."""
    page = "results/smollm2/beyond/README.md"
    header = (
        "SmolLM2 untrained, 8k → 16k, minus YaRN",
        f"[loss within 8k]({page}#in-short)",
        "beyond",
        f"[nats a key within 8k]({page}#keys-in-books)",
        "beyond",
    )
    rows = []
    for row in map(Compared.of, compared):
        by_loss = _differences(of.sample(view), row, LOSS_DIGITS, SIDES)
        rows.append((row.words, *by_loss, *_differences(of.keys(view), row, KEY_DIGITS, SIDES)))
    return table(header, rows)


@offered
def arms(view: View, names: Sequence[str]) -> str:
    """Losses of the first round minus YaRN's, and what training changed."""
    rows = []
    for name in names:
        first = of.first_round(view)
        differences = _differences(first, Compared(name, name), LOSS_DIGITS)
        changed = (first.change(of.sample(view), name, where) for where in SIDES)
        rows.append((name, *differences, *(shown(each, LOSS_DIGITS, True) for each in changed)))
    return table(("method", *PLACES, "training changed within L", "and beyond"), rows)


@offered
def by_position(view: View, name: str) -> str:
    """Loss of a fine-tune minus YaRN's along the text, by round."""
    rounds = {"first round": of.first_round(view), "second round": of.second_round(view)}
    pairs = [(books.row(name), books.row(BASELINE)) for books in rounds.values()]
    by_round = [loss_by_position.gaps_by_range(*pair) for pair in pairs]
    digits = LOSS_DIGITS + 1
    rows = [
        (where, *(shown(gaps[where], digits, True) for gaps in by_round)) for where in by_round[0]
    ]
    slopes = (shown(loss_by_position.slope(*pair), digits, True) for pair in pairs)
    return table(("position", *rounds), [*rows, ("from beginning to end", *slopes)])


@offered
def while_they_trained(
    view: View, compared: Sequence[tuple[str, str]], per_book: int | None = None
) -> str:
    """Differences of training loss by quarters of the steps, and how much they change in one.

    Args:
        per_book: as for :func:`of.training_gaps`. A book that is read once has no level of its own.
    """
    header = (
        "",
        "seed",
        *("steps 1–16", "17–32", "33–48", "49–64"),
        "still closing, by the rule",
        f"{'' if per_book else 'found afterwards: '}change in 16 steps",
    )
    rows = []
    for name, than in compared:
        for seed, by_step in of.training_gaps(view, name, 1, than, per_book).items():
            order = np.zeros(len(by_step)) if per_book else of.trained_on(view, BASELINE)["order"]
            quarters = (_with_error(each, 3) for each in training.quarters(by_step))
            closing = "yes" if training.still_closing(by_step) else "not shown"
            change = training.slope(by_step, order, first=16)
            words = f"{name} minus {than}"
            rows.append((words, str(seed), *quarters, closing, _with_error(change, 4)))
    return table(header, rows)


def _with_error(quarter: training.Quarter, digits: int) -> str:
    return f"{number(quarter.mean, digits, True)} ± {number(quarter.error, digits)}"


@offered
def of_the_second_round(view: View) -> str:
    """Its losses and its nats a key, each a table of its own where there are records; and what
    training changed of them."""
    found = []
    for of_keys, untrained, what, digits in (
        (False, of.sample(view), "loss", LOSS_DIGITS),
        (True, of.keys(view), "nats a key", KEY_DIGITS),
    ):
        books = of.second_round(view, of_keys)
        header = (
            f"fine-tuned, second round: {what}",
            "seeds",
            *SIDES,
            *(f"minus YaRN's: {where}" for where in PLACES),
            *(f"training changed: {where}" for where in SIDES),
        )
        rows = []
        for row in books.rows:
            name = row.setting.name
            levels = (shown(books.level(name, where), digits) for where in SIDES)
            differences = _differences(books, Compared(name, name), digits)
            changes = [NONE for _ in SIDES]
            if name in untrained.names:
                changes = [
                    shown(books.change(untrained, name, where), digits, True) for where in SIDES
                ]
            seeds = ", ".join(map(str, row.seeds))
            rows.append((text(name), seeds, *levels, *differences, *changes))
        if rows:
            found.append(table(header, rows))
    return "\n\n".join(found)


@offered
def covering(view: View, names: Sequence[str], factor: int) -> str:
    """tiny's: a covering n̂ beside the paper's."""
    at = view.results.context_length * factor
    header = (
        f"s = {factor}",
        "untrained: loss minus YaRN's, within L",
        "beyond L",
        f"untrained: passkeys, {tokens(at)}",
        f"fine-tuned: RULER, {tokens(at)}",
        f"fine-tuned: passkeys, {tokens(at)}",
    )
    rows = []
    for name in names:
        losses = of.losses(view, factor)
        differences = _differences(losses, Compared(name, name), LOSS_DIGITS, SIDES)
        tuned = [NONE, NONE]
        if name != "original":
            ruler = view.score("ruler", name, tokens(at), True, factor)
            tuned = [shown(ruler, 1), view.passkeys(name, tokens(at), trained=True, factor=factor)]
        found = view.passkeys(name, tokens(at), factor=factor)
        rows.append((name, *differences, found, *tuned))
    return table(header, rows)
