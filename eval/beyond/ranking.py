"""Whether to extend a model, and by which method: losses and keys of several settings on the same
texts, ranked, as a table and in sentences.

A loss lies within L if it is of one of a text's first L tokens, a key if it begins at most L tokens
before the question. Differences are paired by text, with Student's 95 % interval over texts; those
of fewer than LEAST_TEXTS books have none, and then nothing is decided.

- **Keys decide the order** if the best method's keys beyond L cost less than a blind guess, and at
  least KEYS_MATTER less than those of the method in the middle of the ranking, both by more than
  chance. Else losses beyond L do.
- **Extension pays** where the first method's number beyond L is below that of the model as it is,
  by more than chance and by at least what matters. It does not where the interval leaves that out.
  Else the texts do not tell. The model as it is stands there with or without YaRN's attention
  factor, whichever is better, and a text's keys cost it no more than a guess: to be sure of wrong
  digits is no fault that extension is to be credited for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from core import ORIGINAL
from core.setting import Setting
from eval.intervals import LEAST_TEXTS, students_half

MATTERS = 0.010  # nats per token: a third of what the paper's own untrained perplexities differ by
KEYS_MATTER = 0.5  # nats a key: a factor of 1.6 in the probability of a whole key
GUESS = float(np.log(90_000))  # nats of a blind guess among the numbers of five digits
EQUAL = 5e-5  # nats; a smaller difference is printed as 0.0000


class Measure(NamedTuple):
    """What methods are ranked by: the number of a text, its unit, and how much of it matters."""

    column: str
    unit: str
    digits: int
    matters: float


KEYS = "keys"
LOSS = "loss"
MEASURES = {
    KEYS: Measure("nats_beyond", "nats a key", 2, KEYS_MATTER),
    LOSS: Measure("loss_beyond", "nats a token", 4, MATTERS),
}
EXTEND = "Extend it by"
DO_NOT = "Do not extend it by"
OPEN = "These texts do not tell whether to extend it by"
_BETWEEN_PURPOSES = {EXTEND: " and ", DO_NOT: " or ", OPEN: " or "}


@dataclass(frozen=True)
class Row:
    """What a setting makes of texts.

    Attributes:
        name: as it is typed after --method, or the words for a model that is not extended.
        setting: with `last` if it reads no more than L tokens at a time.
        books: how many different books the texts are of; None if each is one.
        texts: of each text its numbers: "loss_within" and "loss_beyond" in nats a token; if keys
            were asked for, also "nats_…" in nats a key, "found_…" and "keys_…", which are counts.
    """

    name: str
    setting: Setting
    texts: Sequence[Mapping[str, float]]
    books: int | None = None

    @property
    def count(self) -> int:
        """The number of different books."""
        return len(self.texts) if self.books is None else self.books

    @property
    def extends(self) -> bool:
        """Whether it is a method."""
        return self.setting.method != ORIGINAL

    @property
    def asked(self) -> bool:
        """Whether keys were asked for."""
        return MEASURES[KEYS].column in self.texts[0]

    def values(self, column: str) -> np.ndarray:
        """[texts]"""
        return np.array([of_text[column] for of_text in self.texts], dtype=np.float64)

    def mean(self, column: str) -> float:
        return float(self.values(column).mean())

    def found(self, where: str) -> str:
        """Such as "31/40"."""
        return f"{self.values(f'found_{where}').sum():.0f}/{self.values(f'keys_{where}').sum():.0f}"


class Gap:
    """The mean of differences [texts], with the ends of its interval, infinitely far away where
    they are of too few books."""

    def __init__(self, differences: np.ndarray, books: int) -> None:
        self.known = books >= LEAST_TEXTS
        self.mean = float(differences.mean())
        self.half = students_half(differences) if self.known else math.inf
        self.low = self.mean - self.half
        self.high = self.mean + self.half

    @property
    def is_chance(self) -> bool:
        """Whether the interval holds zero."""
        return abs(self.mean) < max(self.half, EQUAL)

    def below(self, margin: float) -> bool:
        """Whether it is less than zero by more than chance, and by at least a margin."""
        return self.high < 0 and self.mean <= -margin

    def shown(self, what: str) -> str:
        """With its interval, as numbers of KEYS or LOSS are printed."""
        numbers = (self.mean, self.low, self.high) if self.known else (self.mean,)
        mean, *ends = (f"{number:+.{MEASURES[what].digits}f}" for number in numbers)
        return f"{mean} [{', '.join(ends)}]" if ends else mean


def minus(row: Row, other: Row, column: str) -> Gap:
    """A row minus another, paired by text."""
    return Gap(row.values(column) - other.values(column), row.count)


@dataclass(frozen=True)
class Ranking:
    """Methods, the first of them the best, beside the model that is not extended.

    Attributes:
        methods: in their order.
        unextended: the model as it is; none where it was not measured.
        by: KEYS or LOSS.
        reason: why, as a sentence; empty if it was asked for.
    """

    methods: list[Row]
    unextended: list[Row]
    by: str
    reason: str

    @property
    def rows(self) -> list[Row]:
        return self.methods + self.unextended

    def gap(self, row: Row) -> Gap:
        """A row minus the first, in what they are ranked by."""
        return minus(row, self.methods[0], MEASURES[self.by].column)

    @property
    def level(self) -> list[Row]:
        """The methods that are not told apart from the first."""
        return [row for row in self.methods[1:] if self.gap(row).is_chance]


def ranked(rows: Sequence[Row], by: str | None = None) -> Ranking:
    """The ranking of rows on the same texts.

    Args:
        by: KEYS, if they were asked for, or LOSS; None for what decides.
    """
    methods = [row for row in rows if row.extends]
    unextended = [row for row in rows if not row.extends]
    reason = ""
    if by is None:
        reason = _why_not_keys(methods)
        by = LOSS if reason else KEYS
        reason = reason or "they tell the methods apart"
    return Ranking(_sorted(methods, by), unextended, by, reason)


def _sorted(rows: Sequence[Row], by: str) -> list[Row]:
    return sorted(rows, key=lambda row: row.mean(MEASURES[by].column))


def _why_not_keys(methods: Sequence[Row]) -> str:
    """Why keys do not decide the order of these methods; empty if they do."""
    if not methods[0].asked:
        return "no keys were asked for"
    column = MEASURES[KEYS].column
    rows = _sorted(methods, KEYS)
    best = rows[0]
    middle = rows[len(rows) // 2]
    if best.count < LEAST_TEXTS:
        return f"texts of fewer than {LEAST_TEXTS} books give keys no interval"
    if not Gap(best.values(column) - GUESS, best.count).below(0):
        return "no method's keys beyond L cost less than a guess by more than chance"
    if not minus(best, middle, column).below(KEYS_MATTER):
        return (
            f"by keys the best, {best.name}, is not ahead of the middle one, {middle.name}, by "
            f"{KEYS_MATTER} nats and more than chance"
        )
    return ""


def table(ranking: Ranking) -> str:
    """A ranking as lines of text."""
    asked = ranking.methods[0].asked
    titles = {"loss": 6, "nats a key": 6, "keys found": 7} if asked else {"loss": 6}
    above = "".join(f"  {title:{2 * width + 2}}" for title, width in titles.items())
    below = "".join(f"  {'within':>{width}}  {'beyond':>{width}}" for width in titles.values())
    minus_first = f"{MEASURES[ranking.by].unit} beyond, minus the first"
    lines = [f"{'':24}{above}".rstrip(), f"{'method':24}{below}  {minus_first}"]
    sides = "within", "beyond"
    for row in ranking.rows:
        cells = [f"{row.mean(f'loss_{where}'):.4f}" for where in sides]
        if asked:
            cells += [f"{row.mean(f'nats_{where}'):6.2f}" for where in sides]
            cells += [f"{row.found(where):>7}" for where in sides]
        if row is not ranking.methods[0]:
            cells.append(ranking.gap(row).shown(ranking.by))
        lines.append(f"{row.name:24}  {'  '.join(cells)}")
    return "\n".join(lines)


def verdict(ranking: Ranking, context_length: int) -> list[str]:
    """What a ranking says: whether to extend, for what, by which method, and what it costs."""
    short = [row for row in ranking.unextended if row.setting.last]
    if not short:
        return _which(ranking)
    whether = _whether(ranking, short, context_length)
    return [*whether, *_which(ranking), _cost(ranking.methods[0], short[0])]


def _whether(ranking: Ranking, short: Sequence[Row], context_length: int) -> list[str]:
    """Whether to extend, and what that rests on."""
    first = ranking.methods[0]
    purposes = {
        KEYS: f"to find what stands more than {context_length:,} tokens back",
        LOSS: f"for a lower loss beyond {context_length:,} tokens",
    }
    answers: dict[str, list[str]] = {}
    grounds = []
    for what in (KEYS, LOSS) if first.asked else (LOSS,):
        gap, ground = _against(first, min(short, key=lambda row: _counted(row, what).mean()), what)
        grounds.append(ground)
        matters = MEASURES[what].matters
        answer = EXTEND if gap.below(matters) else OPEN if gap.low <= -matters else DO_NOT
        answers.setdefault(answer, []).append(purposes[what])
    sentences = [
        f"{answer} {first.name} {word.join(answers[answer])}."
        for answer, word in _BETWEEN_PURPOSES.items()
        if answer in answers
    ]
    return sentences + grounds


def _against(first: Row, as_it_is: Row, what: str) -> tuple[Gap, str]:
    """The first method minus the model as it is, and the sentence that says so."""
    column, unit, *_ = MEASURES[what]
    gap = Gap(first.values(column) - _counted(as_it_is, what), first.count)
    if what == LOSS:
        sentence = f"Loss beyond L of {first.name} against {as_it_is.name!r}: {gap.shown(what)}"
        return gap, f"{sentence} {unit}."
    found = f"{first.found('beyond')}, {as_it_is.name!r} {as_it_is.found('beyond')}"
    sentence = f"Of keys beyond L {first.name} finds {found}: {gap.shown(what)} {unit}"
    return gap, f"{sentence}, where a guess counts as {GUESS:.1f} at most."


def _counted(as_it_is: Row, what: str) -> np.ndarray:
    """What the model as it is is held to, [texts]: of keys no more than a guess."""
    values = as_it_is.values(MEASURES[what].column)
    return np.minimum(values, GUESS) if what == KEYS else values


def _which(ranking: Ranking) -> list[str]:
    """The method, whether chance chose it, and how many were compared."""
    first, *others = ranking.methods
    count = len(ranking.methods)
    if not others:
        return [f"{first.name} alone was measured, so nothing is ranked."]
    why = f" ({ranking.reason})" if ranking.reason else ""
    said = [f"First of {count} methods by {ranking.by} beyond L{why}: {first.name}."]
    gap = ranking.gap(others[0])
    if not gap.known:
        said.append(
            f"Texts of fewer than {LEAST_TEXTS} books give no interval, so the order may be chance."
        )
        return said
    chance = "no more than chance" if gap.is_chance else "more than chance"
    unit = MEASURES[ranking.by].unit
    said.append(f"The next, {others[0].name}, differs by {gap.shown(ranking.by)} {unit}: {chance}.")
    if level := [row.name for row in ranking.level]:
        said.append(f"Level with the first, as far as these texts tell: {', '.join(level)}.")
    said.append(f"The first of {count} was chosen on these texts, which flatters it a little.")
    return said


def _cost(first: Row, as_it_is: Row) -> str:
    """What the first method costs on prompts within L."""
    gap = minus(first, as_it_is, "loss_within")
    verb = "costs" if gap.mean >= 0 else "saves"
    if gap.known and gap.is_chance:
        verb = "costs no more than chance"
    keys = ""
    if first.asked:
        found = f"{first.found('within')}, {as_it_is.name!r} {as_it_is.found('within')}"
        keys = f" Of keys within L it finds {found}."
    return (
        f"On prompts within L {first.name} {verb}: {gap.shown(LOSS)} nats a token of loss "
        f"against {as_it_is.name!r}.{keys}"
    )


def facts(ranking: Ranking) -> list[dict]:
    """The rows of the table for programs: names, means, counts, and the difference to the first."""
    lines = []
    for row in ranking.rows:
        line: dict = {"method": row.name, "extends": row.extends}
        for column in row.texts[0]:
            whole = column.startswith(("found", "keys"))
            line[column] = int(row.values(column).sum()) if whole else row.mean(column)
        gap = ranking.gap(row)
        line["gap"] = gap.mean
        line["gap_low"] = gap.low if gap.known else None
        line["gap_high"] = gap.high if gap.known else None
        line["by_text"] = [dict(of_text) for of_text in row.texts]
        lines.append(line)
    return lines
