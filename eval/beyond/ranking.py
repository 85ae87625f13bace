"""Whether to extend a model, and by which method: losses and keys of several settings on the same
texts, ranked, as a table and in sentences.

A loss lies within L if it is of one of a text's first L tokens, a key if it begins at most L tokens
before the question. Differences are paired by text, with Student's 95 % interval over texts; fewer
than LEAST_TEXTS texts have none, and then nothing is decided.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import InputError
from eval.intervals import LEAST_TEXTS, students_half

MATTERS = 0.010  # nats per token: a third of what the paper's own untrained perplexities differ by
KEYS_MATTER = 0.5  # nats a key: a factor of 1.6 in the probability of a whole key
GUESS = float(np.log(90_000))  # nats of a blind guess among the numbers of five digits
EQUAL = 5e-5  # nats; a smaller difference is printed as 0.0000

KEYS = "keys"
LOSS = "loss"
_COLUMN = {KEYS: "nats_beyond", LOSS: "loss_beyond"}  # what each ranks by
_UNIT = {KEYS: "nats a key", LOSS: "nats a token"}
_DIGITS = {KEYS: 2, LOSS: 4}
_MATTERS = {KEYS: KEYS_MATTER, LOSS: MATTERS}


@dataclass(frozen=True)
class Row:
    """What a setting makes of texts.

    Attributes:
        name: as it is typed after --method, or the words for a model that is not extended.
        texts: of each text its numbers: "loss_within" and "loss_beyond" in nats a token; if keys
            were asked for, also "nats_…" in nats a key, "found_…" and "keys_…", which are counts.
        extends: whether it is a method.
        short: whether it reads no more than L tokens at a time.
    """

    name: str
    texts: Sequence[Mapping[str, float]]
    extends: bool = True
    short: bool = False

    def values(self, column: str) -> np.ndarray:
        """[texts]"""
        return np.array([of_text[column] for of_text in self.texts], dtype=np.float64)

    def mean(self, column: str) -> float:
        return float(self.values(column).mean())

    def found(self, where: str) -> str:
        """Such as "31/40"."""
        return f"{self.values(f'found_{where}').sum():.0f}/{self.values(f'keys_{where}').sum():.0f}"

    @property
    def asked(self) -> bool:
        """Whether keys were asked for."""
        return _COLUMN[KEYS] in self.texts[0]


@dataclass(frozen=True)
class Gap:
    """The mean of differences, and half the width of its interval; None without one."""

    mean: float
    half: float | None

    @classmethod
    def of(cls, values: np.ndarray) -> Gap:
        half = students_half(values) if len(values) >= LEAST_TEXTS else None
        return cls(float(values.mean()), half)

    @property
    def low(self) -> float:
        return self.mean - (self.half or 0)

    @property
    def high(self) -> float:
        return self.mean + (self.half or 0)

    @property
    def is_chance(self) -> bool:
        """Whether the interval holds zero; without one, whether there is no difference."""
        return abs(self.mean) < max(self.half or 0, EQUAL)

    def below(self, margin: float) -> bool:
        """Whether it is less than zero by more than chance, and by at least a margin."""
        return self.half is not None and self.high < 0 and self.mean <= -margin

    def shown(self, digits: int) -> str:
        if self.half is None:
            return f"{self.mean:+.{digits}f}"
        return f"{self.mean:+.{digits}f} [{self.low:+.{digits}f}, {self.high:+.{digits}f}]"


def minus(row: Row, other: Row, column: str) -> Gap:
    """A row minus another, paired by text."""
    return Gap.of(row.values(column) - other.values(column))


@dataclass(frozen=True)
class Ranking:
    """Methods, the first of them the best, beside the model that is not extended.

    Attributes:
        methods: in their order.
        unextended: the model as it is; none where it was not measured.
        by: KEYS or LOSS.
        reason: why, as a sentence; empty if it was asked for.
    """

    methods: tuple[Row, ...]
    unextended: tuple[Row, ...]
    by: str
    reason: str

    def gap(self, row: Row) -> Gap:
        """A row minus the first, in what they are ranked by."""
        return minus(row, self.methods[0], _COLUMN[self.by])

    @property
    def level(self) -> list[Row]:
        """The methods that are not told apart from the first."""
        return [row for row in self.methods[1:] if self.gap(row).is_chance]


def ranked(rows: Sequence[Row], by: str | None = None) -> Ranking:
    """The ranking of rows on the same texts.

    Args:
        by: KEYS or LOSS; None for what decides.

    Raises:
        InputError: no keys were asked for, and they are to decide.
    """
    methods = [row for row in rows if row.extends]
    unextended = tuple(row for row in rows if not row.extends)
    asked = rows[0].asked
    if by == KEYS and not asked:
        raise InputError("no keys were asked for, so none can be ranked by; leave --by out.")
    reason = ""
    if by is None:
        reason = _why_not_keys(_sorted(methods, KEYS)) if asked else "no keys were asked for"
        by = LOSS if reason else KEYS
        reason = reason or "they tell the methods apart"
    return Ranking(_sorted(methods, by), unextended, by, reason)


def _sorted(rows: Sequence[Row], by: str) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: row.mean(_COLUMN[by])))


def _why_not_keys(rows: Sequence[Row]) -> str:
    """Why keys do not decide the order of these methods, the best of them first; empty if they
    do."""
    column = _COLUMN[KEYS]
    best = rows[0]
    middle = rows[len(rows) // 2]
    if len(best.texts) < LEAST_TEXTS:
        return f"fewer than {LEAST_TEXTS} texts give keys no interval"
    if not Gap.of(best.values(column) - GUESS).below(0):
        return "no method's keys beyond L cost less than a guess by more than chance"
    if not minus(best, middle, column).below(KEYS_MATTER):
        return (
            f"by keys the best, {best.name}, is not ahead of the middle one, {middle.name}, by "
            f"{KEYS_MATTER} nats and more than chance"
        )
    return ""


def table(ranking: Ranking, most: int | None = None) -> str:
    """A ranking as lines of text.

    Args:
        most: how many of its methods are shown; None for all.
    """
    asked = ranking.methods[0].asked
    titles = {"loss": 6, "nats a key": 6, "keys found": 7} if asked else {"loss": 6}
    above = "".join(f"  {title:{2 * width + 2}}" for title, width in titles.items())
    below = "".join(f"  {'within':>{width}}  {'beyond':>{width}}" for width in titles.values())
    minus_first = f"{_UNIT[ranking.by]} beyond, minus the first"
    lines = [f"{'':24}{above}".rstrip(), f"{'method':24}{below}  {minus_first}"]
    for row in (*ranking.methods[:most], *ranking.unextended):
        cells = [f"{row.mean(f'loss_{where}'):.4f}" for where in ("within", "beyond")]
        if asked:
            cells += [f"{row.mean(f'nats_{where}'):6.2f}" for where in ("within", "beyond")]
            cells += [f"{row.found(where):>7}" for where in ("within", "beyond")]
        first = row is ranking.methods[0]
        gap = "" if first else ranking.gap(row).shown(_DIGITS[ranking.by])
        lines.append(f"{row.name:24}  {'  '.join(cells)}  {gap}".rstrip())
    return "\n".join(lines)


def verdict(ranking: Ranking, context_length: int) -> list[str]:
    """What a ranking says: whether to extend, for what, by which method, and what it costs."""
    short = [row for row in ranking.unextended if row.short]
    said = _whether(ranking, short, context_length) if short else []
    return [*said, *_which(ranking), *(_cost(ranking, short[0]) if short else [])]


def _whether(ranking: Ranking, short: Sequence[Row], context_length: int) -> list[str]:
    """Whether to extend, and what that rests on."""
    first = ranking.methods[0]
    purposes = {
        KEYS: f"to find what stands more than {context_length:,} tokens back",
        LOSS: f"for a lower loss beyond {context_length:,} tokens",
    }
    gaps = {}
    grounds = []
    for what in (KEYS, LOSS) if first.asked else (LOSS,):
        as_it_is = _sorted(short, what)[0]
        column = _COLUMN[what]
        most = GUESS if what == KEYS else np.inf
        known = np.minimum(as_it_is.values(column), most)
        gaps[what] = Gap.of(first.values(column) - known)
        against = f"{gaps[what].shown(_DIGITS[what])} {_UNIT[what]}"
        if what == KEYS:
            found = f"{first.found('beyond')}, {as_it_is.name!r} {as_it_is.found('beyond')}"
            grounds.append(
                f"Of keys beyond L {first.name} finds {found}: {against}, where a guess counts as "
                f"{GUESS:.1f} at most."
            )
        else:
            grounds.append(f"Loss beyond L of {first.name} against {as_it_is.name!r}: {against}.")
    pays = [what for what, gap in gaps.items() if gap.below(_MATTERS[what])]
    # without an interval nothing is left out
    open_ones = [
        what
        for what, gap in gaps.items()
        if what not in pays and (gap.half is None or gap.low <= -_MATTERS[what])
    ]
    others = [what for what in gaps if what not in (*pays, *open_ones)]
    sentences = []
    if pays:
        sentences.append(
            f"Extend it by {first.name} {' and '.join(purposes[what] for what in pays)}."
        )
    if others:
        sentences.append(
            f"Do not extend it by {first.name} {' or '.join(purposes[what] for what in others)}."
        )
    if open_ones:
        whether = " or ".join(purposes[what] for what in open_ones)
        sentences.append(f"These texts do not tell whether to extend it by {first.name} {whether}.")
    return sentences + grounds


def _which(ranking: Ranking) -> list[str]:
    """The method, whether chance chose it, and how many were compared."""
    first, *others = ranking.methods
    count = len(ranking.methods)
    if not others:
        return [f"{first.name} alone was measured, so nothing is ranked."]
    why = f" ({ranking.reason})" if ranking.reason else ""
    said = [f"First of {count} methods by {ranking.by} beyond L{why}: {first.name}."]
    gap = ranking.gap(others[0])
    if gap.half is None:
        said.append(f"Fewer than {LEAST_TEXTS} texts give no interval, so the order may be chance.")
        return said
    chance = "no more than chance" if gap.is_chance else "more than chance"
    said.append(
        f"The next, {others[0].name}, differs by {gap.shown(_DIGITS[ranking.by])} "
        f"{_UNIT[ranking.by]}: {chance}."
    )
    if level := [row.name for row in ranking.level]:
        said.append(f"Level with the first, as far as these texts tell: {', '.join(level)}.")
    said.append(f"The first of {count} was chosen on these texts, which flatters it a little.")
    return said


def _cost(ranking: Ranking, as_it_is: Row) -> list[str]:
    """What the first method costs on prompts within L."""
    first = ranking.methods[0]
    gap = minus(first, as_it_is, "loss_within")
    verb = "costs" if gap.mean >= 0 else "saves"
    if gap.half is not None and gap.is_chance:
        verb = "costs no more than chance"
    return [
        f"On prompts within L {first.name} {verb}: {gap.shown(_DIGITS[LOSS])} nats a token of loss "
        f"against {as_it_is.name!r}."
    ]


def facts(ranking: Ranking) -> list[dict]:
    """The rows of the table for programs: names, means, counts, and the difference to the first."""
    lines = []
    for row in (*ranking.methods, *ranking.unextended):
        line: dict = {"method": row.name, "extends": row.extends}
        for column in row.texts[0]:
            whole = column.startswith(("found", "keys"))
            line[column] = int(row.values(column).sum()) if whole else row.mean(column)
        gap = ranking.gap(row)
        line |= {"gap": gap.mean, "gap_low": None, "gap_high": None}
        if gap.half is not None:
            line |= {"gap_low": gap.low, "gap_high": gap.high}
        line["by_text"] = [dict(of_text) for of_text in row.texts]
        lines.append(line)
    return lines
