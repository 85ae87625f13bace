"""What templates beyond the paper can say of a model besides: losses and keys in books, within L
and beyond it, without training and fine-tuned; learned factors."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import replace
from types import ModuleType

import numpy as np

import records
from analysis import metrics
from analysis.beyond import learned, loss_by_position, needles, training
from analysis.beyond.books import BEYOND as BEYOND_L
from analysis.beyond.books import WITHIN
from analysis.comparison import Comparison, Row, compared, largest, matched
from analysis.results import Record, read
from analysis.scores import Score, difference_over_texts, over_texts
from analysis.settings import BASELINE
from core import ORIGINAL, rope
from core.errors import InputError
from core.setting import Setting
from eval.beyond import ranking
from report.model_view import SECTIONS, View, find, offered
from tables.kit.markdown import text

SECTIONS |= {
    "loss_by_position": (
        "Loss by position",
        {
            "within_and_beyond": "Loss of each method minus YaRN's, within L and beyond",
            "training_loss": "Training loss minus YaRN's, step by step",
            "loss_by_position": "Loss against position",
        },
    ),
    "needles": ("Keys in books", {"needles": "Nats a key, by its distance to the question"}),
    "learned": (
        "Learned scaling factors",
        {"learned": "Factors by which each pair is divided: learned ones, and every method's"},
    ),
}


class OnBooks:
    """Rows of one experiment on the same books: losses by position in nats per token, or keys in
    nats a key.

    Args:
        by: the experiment's module in analysis/beyond/.
        rows: what is compared.
    """

    def __init__(self, by: ModuleType, rows: Comparison) -> None:
        self._by = by
        self.rows = rows.rows

    @property
    def names(self) -> list[str]:
        """Of the rows."""
        return [row.setting.name for row in self.rows]

    def row(self, name: str) -> Row:
        """A row by its name; InputError if there is none."""
        return find(Comparison(self.rows), self._by.__name__, name, None)

    def level(self, name: str, where: str = BEYOND_L) -> Score:
        """What a row costs."""
        return self._by.level(self.row(name), where)

    def gap(self, name: str, than: str = BASELINE, where: needles.Place = BEYOND_L) -> Score:
        """What a row costs minus another, paired by book; of keys also at one of them."""
        return self._by.gap(self.row(name), self.row(than), where)

    def change(self, before: OnBooks, name: str, where: str = BEYOND_L) -> Score:
        """What a row costs minus what a row of the same name costs in others on the same books."""
        return self._by.gap(self.row(name), before.row(name), where)

    def change_apart(self, before: OnBooks, name: str, than: str, where: str) -> Score:
        """A row's :meth:`change` minus that of another, paired by book and by the seeds that both
        rows share."""
        ours, other, shared = matched(self.row(name), self.row(than))
        changes = []
        for row in (ours, other):
            _, untrained, _ = matched(row, before.row(row.setting.name))
            changes.append(self._by.values(row, where) - self._by.values(untrained, where))
        return difference_over_texts(*changes, shared)

    def found(self, name: str, where: str = BEYOND_L) -> str:
        """How many keys a row finds, of how many."""
        return "{} of {}".format(*self._by.found(self.row(name), where))


@offered
@functools.cache
def losses(view: View, factor: float | None = None) -> OnBooks:
    """Of all settings without training; if no factor is given, at the least that has YaRN's."""
    factors = [factor] if factor else loss_by_position.measured_factors(view.results)
    sets = [compared(view.results, "loss_by_position", False, each) for each in factors]
    with_yarn = (rows for rows in sets if rows.find(rope.BASELINE, {}))
    return OnBooks(loss_by_position, next(with_yarn, largest(sets)))


@offered
def loss(
    view: View,
    name: str,
    than: str = BASELINE,
    factor: float | None = None,
    where: str = BEYOND_L,
) -> Score:
    """A row's loss minus another's in :func:`losses`."""
    return losses(view, factor).gap(name, than, where)


@offered
@functools.cache
def sample(view: View) -> OnBooks:
    """Losses without training on the texts that are enough for a sample, at the least factor."""
    factor = min(loss_by_position.measured_factors(view.results))
    sets = loss_by_position.samples(view.results, factor, trained=False)
    return OnBooks(loss_by_position, largest(sets))


@offered
@functools.cache
def keys(view: View, factor: float | None = None) -> OnBooks:
    """Keys without training on the most books; if no factor is given, at the least."""
    factors = [factor] if factor else needles.measured_factors(view.results)
    sets = needles.samples(view.results, min(factors), trained=False) if factors else []
    return OnBooks(needles, largest(sets))


@offered
@functools.cache
def first_round(view: View) -> OnBooks:
    """Losses of the fine-tunes that read whole books, on the texts of :func:`sample`."""
    texts = sample(view).rows[0].first.alike
    sets = _fine_tuned(view, loss_by_position, per_book=False)
    alike = (each for each in sets if each.first.alike == texts)
    return OnBooks(loss_by_position, largest([*alike]))


@offered
@functools.cache
def second_round(view: View, of_keys: bool = False) -> OnBooks:
    """Losses, or keys, of the fine-tunes that read so many sequences of each book: the most
    settings on one set of books."""
    by = needles if of_keys else loss_by_position
    return OnBooks(by, largest(_fine_tuned(view, by, per_book=True)))


def _fine_tuned(view: View, by: ModuleType, per_book: bool) -> list[Comparison]:
    """The samples of one round at the least factor, largest first."""
    factors = by.measured_factors(view.results)
    sets = by.samples(view.results, min(factors), trained=True) if factors else []
    return [each for each in sets if ("per_book" in each.first.training) == per_book]


@offered
def fine_tuned_on(
    view: View, texts: Collection[str], name: str, without: bool = False, where: str = BEYOND_L
) -> Score:
    """A row's loss minus YaRN's in the first round, on some of the texts, or on all others.

    Raises:
        InputError: one of them was not scored.
    """
    titles = np.unique(loss_by_position.texts(first_round(view).row(name).first))
    if unknown := set(texts) - {*titles}:
        raise InputError(f"{unknown} were not scored; change the page's template.")
    gaps = np.array(first_round(view).gap(name, where=where).texts)
    return over_texts([gaps[np.isin(titles, [*texts]) != without]])


@offered
def trained_on(view: View, name: str) -> dict:
    """What a row of the first round read: its books, and the book of each sequence."""
    return fine_tune(view, first_round(view).row(name).first).data_facts


@offered
def books_read(view: View, name: str) -> str:
    """The books of :func:`trained_on`, each with the number of its sequences, the most first."""
    books = sorted(trained_on(view, name)["books"], key=lambda book: -book["sequences"])
    return ", ".join(f"{text(book['title'])} {book['sequences']}" for book in books)


@offered
def cost(view: View, name: str) -> str:
    """The records of a row of the first round, each with the hours that it took."""
    shown = []
    for run in first_round(view).row(name).runs:
        for what, record in (("training", fine_tune(view, run)), ("losses", run)):
            hours = records.read(record.path)["environment"]["seconds"] / 3600
            shown.append(f"[{what}]({view.to(record.path)}) {hours:.1f} h")
    return ", ".join(shown)


def fine_tune(view: View, run: Record) -> Record:
    """The record of the fine-tune that a record is of."""
    source = run.run["model"]["source"]
    return read(records.path(view.results.folder, view.results.name, "finetune", source))


@offered
def training_gaps(
    view: View, name: str, batch: int, than: str = BASELINE, per_book: int | None = None
) -> dict[int, np.ndarray]:
    """By seed, of the shortest fine-tunes at the least factor and at `batch` sequences a step: the
    loss of each step minus that of another, on the same sequences longer than L (nats per token,
    [steps]).

    Args:
        per_book: of the second round's, the most sequences that a book gave; else the first's.
    """
    gaps = sorted(training.gaps(view.results), key=lambda gap: -len(gap.by_step))
    least = min((gap.setting.factor for gap in gaps), default=None)
    ours, others = (
        {
            gap.seed: gap.by_step
            for gap in gaps
            if gap.setting.factor == least
            and (gap.setting.name, gap.batch, gap.per_book) == (each, batch, per_book)
        }
        for each in (name, than)
    )
    if than == BASELINE:  # which the gaps are to
        return ours
    return {seed: ours[seed] - others[seed] for seed in sorted(ours.keys() & others.keys())}


@offered
def fine_tuning(view: View, folder: str, where: str = BEYOND_L) -> Score:
    """What a fine-tune changed of the loss, paired by text; its only scored record is in a folder
    of beyond/.

    Raises:
        InputError: there is no such record, or not the same method's on these texts untrained.
    """
    tuned = _only(view, folder, "loss_by_position")
    untrained = sample(view).row(tuned.setting.name)
    return loss_by_position.gap(tuned, untrained, where)


@offered
def passkeys_in(view: View, folder: str) -> str:
    """Passkeys found of those asked at each length, by the only such record in a folder of
    beyond/."""
    by_length = metrics.passkeys_by_length(_only(view, folder, "passkey"))
    del by_length[metrics.ALL]
    return ", ".join(f"{found} of {asked} at {at}" for at, (found, asked, _) in by_length.items())


def _only(view: View, folder: str, experiment: str) -> Row:
    """Of the only record of an experiment in a folder of beyond/."""
    runs = replace(view.results, part=folder).records(experiment)
    if len(runs) != 1:
        raise InputError(f"{len(runs)} records of {experiment} in {folder}, not one.")
    return Row(Setting.of(runs[0].run), tuple(runs))


@offered
def off_float32(view: View, name: str, where: str = BEYOND_L) -> list[float]:
    """Of each book that a row was asked in float32, too: its nats a key minus those in float32."""
    row = keys(view).row(name)
    (exact,) = (
        run
        for run in view.results.records("needles")
        if run.run["dtype"] == "float32" and Setting.of(run.run) == row.setting
    )
    asked = {title: row.first.scores["keys"][title] for title in exact.scores["keys"]}
    same = replace(row.first, scores=row.first.scores | {"keys": asked})
    ours, others = needles.by_text(same, exact, where=where)
    return (ours - others).tolist()


@offered
def of_windows(view: View, name: str, window: str, than: str, other_window: str) -> Score:
    """The loss of whole texts in windows of one length minus another row's in windows of another,
    paired by text (nats per token)."""
    ours, others = (
        view.score("perplexity", each, length).texts
        for each, length in ((name, window), (than, other_window))
    )
    return over_texts([np.log(ours) - np.log(others)])


@offered
def best(view: View, count: int) -> str:
    """The first rows that `dprope best` prints of these texts and methods, without keys."""
    rows = []
    for row in sample(view).rows:
        if row.setting.method == ORIGINAL:
            continue
        sides = (loss_by_position.level(row, side).texts for side in (WITHIN, BEYOND_L))
        by_text = [
            {"loss_within": within, "loss_beyond": beyond}
            for within, beyond in zip(*sides, strict=True)
        ]
        rows.append(ranking.Row(row.setting.typed, row.setting, by_text))
    header = 2
    return "\n".join(ranking.table(ranking.ranked(rows)).splitlines()[: header + count])


@offered
def attention_factor(view: View, name: str) -> float:
    """What a row without training multiplies queries and keys by; 1 if nothing."""
    rows = Comparison((*losses(view).rows, *keys(view).rows))
    setting = find(rows, "losses or keys", name, None).setting
    return setting.scaling(view.results.geometry).attention_factor


def ranked(view: View, factor: float | None = None) -> list[tuple[str, Score]]:
    """The comparison's methods with their loss beyond L minus YaRN's, least first; learned factors
    apart."""
    of = losses(view, factor)
    rows = learned.methods(view.results, Comparison(of.rows))
    gaps = [(row.setting.name, of.gap(row.setting.name)) for row in rows]
    return sorted(gaps, key=lambda entry: entry[1].mean)


@offered
def to_learned(view: View, name: str, factor: float) -> Score:
    """A method's loss beyond L without training minus that of factors found by gradient descent,
    paired by text."""
    scored = learned.scored(view.results, factor)
    if not scored:
        raise InputError(f"no learned factors of s = {factor:g} were scored; see table_learned.")
    rows, least = scored
    return loss_by_position.gap(rows[name], least)


@offered
def pairs(view: View, name: str, factor: float | None = None) -> set[int]:
    """Those that a row without training interpolates."""
    scaling = losses(view, factor).row(name).setting.scaling(view.results.geometry)
    return set(np.flatnonzero(scaling.interpolated).tolist())


@offered
def wavelength(view: View, pair: int) -> float:
    """Of a pair in pre-training, in tokens."""
    return float(view.results.geometry.wavelength[pair])


@offered
def learned_factors(view: View, start: str, factor: float) -> np.ndarray:
    """What each pair is divided by that was learned from a method's factors: [seeds, pairs]."""
    (found,) = (
        each
        for each in learned.groups(view.results)
        if (each.setting.method, each.setting.factor) == (start, factor)
    )
    return learned.factors(found)
