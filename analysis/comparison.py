"""Records as rows: which may stand in one block, one row for all seeds of a setting, ablations of
one option."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analysis.results import Record, Results, models
from analysis.scores import Score, Scores, over_seeds
from analysis.settings import STATES
from core import PROPOSED, rope
from core.errors import InputError
from core.geometry import RopeGeometry
from core.setting import Setting
from experiments import suites
from records import RESULTS, has, of_scaling

Metrics = Callable[[Record], Scores]
# Settings that fine-tunes have in common where they are compared, besides how much they read.
TRAINED_ALIKE = (
    *("data", "bos", "learning_rate", "betas"),
    *("weight_decay", "clip", "dtype", "weights"),
)


@dataclass(frozen=True)
class Row:
    """A setting and its records: one per training seed, or a single one without training."""

    setting: Setting
    runs: tuple[Record, ...]

    @property
    def first(self) -> Record:
        """One of the records, for what all have in common."""
        return self.runs[0]

    @property
    def trained(self) -> bool:
        """Whether the model was fine-tuned."""
        return self.first.training is not None

    @property
    def state(self) -> str:
        """The same in words, see STATES."""
        return STATES[self.trained]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the fine-tunes."""
        return tuple(run.seed for run in self.runs if run.training)

    @property
    def fine_tune(self) -> dict:
        """What the fine-tunes of all seeds have in common; empty without training."""
        return _fine_tune(self.first)

    @property
    def steps(self) -> int | None:
        """How long the fine-tunes trained; None without training. Their sequences may be of another
        length than those of other methods, as CLEX's are."""
        return (self.first.training or {}).get("steps")

    def of_seeds(self, seeds: set[int]) -> Row:
        """The row with the runs of some seeds only; of all where there are none."""
        runs = (run for run in self.runs if not seeds or run.seed in seeds)
        return Row(self.setting, tuple(runs))

    def scores(self, metrics: Metrics) -> Scores:
        """The scores over all seeds."""
        return over_seeds([metrics(run) for run in self.runs])

    def by_seed(self, metrics: Metrics, metric: str) -> dict[int | None, Score]:
        """One metric of each run."""
        return {run.seed: metrics(run)[metric] for run in self.runs}


@dataclass(frozen=True)
class Comparison:
    """Rows of the same samples and settings.

    Attributes:
        training: what the fine-tunes of all rows have in common, in a line; empty without training.
    """

    rows: tuple[Row, ...]
    training: str = ""

    def __bool__(self) -> bool:
        return bool(self.rows)

    @property
    def first(self) -> Record:
        """One record, for what all have in common."""
        return self.rows[0].first

    def find(
        self, method: str | None, options: dict | None = None, factor: float | None = None
    ) -> Row | None:
        """The row of a setting that reads whole texts, or None; without `options` that of none but
        a file, without `factor` any factor matches."""
        for row in self.rows:
            setting = row.setting
            given = setting.plain() if options is None else dict(setting.options) == options
            here = setting.method == method and factor in (None, setting.factor)
            if given and here and not setting.last:
                return row
        return None


def comparisons(
    results: Results, experiment: str, trained: bool, factor: float | None = None
) -> list[Comparison]:
    """The sets of records that may stand in one table, the largest set first.

    Fine-tunes stand apart that read other data, or so many sequences of each book, or that were
    trained otherwise than by their method.

    Args:
        trained: take the records of fine-tuned models, or those without training.
        factor: s; None for any.

    Raises:
        InputError: a record's method has another formula now. Of the committed records a test
            checks that.
    """
    sets = {}
    fine_tunes = results.records("finetune") if trained else ()
    trained_by = {of.identity: _training(of.run) for of in fine_tunes}
    for record in results.records(experiment):
        if bool(record.training) == trained and factor in (None, record.run["factor"]):
            if results.folder != RESULTS:
                check_formula(record, results.plain)
            fine_tune = record.training or {}
            training = trained_by.get(fine_tune.get("identity"))
            common = json.dumps([fine_tune.get("per_book"), training]) if trained else ""
            alike = json.dumps(record.alike, sort_keys=True)
            sets.setdefault((alike, common), []).append(record)
    listed = sorted(sets.items(), key=lambda found: _size(found[1]), reverse=True)
    return [_comparison(records, common) for (_, common), records in listed]


def _training(run: dict) -> list:
    """What fine-tunes in one table have in common besides what records of their models state. Of a
    step that is its tokens for each of s, as CLEX's sequences are more and shorter than others'."""
    tokens = run.get("batch", 1) * run.get("length", 1) / run["factor"]
    return [*map(run.get, TRAINED_ALIKE), tokens]


def check_formula(record: Record, geometry: RopeGeometry | None) -> None:
    """Refuses a record that states the frequencies of another formula than its method has now."""
    stated = record.run.get("scaling")
    now = stated and geometry and _identity(Setting.of(record.run), geometry)
    if now and now != stated:
        raise InputError(
            f"{record.path} was measured with another formula of {record.run['method']!r} than it "
            "has now; measure it again with --replace, or take it out."
        )


@functools.cache
def _identity(setting: Setting, geometry: RopeGeometry) -> str | None:
    """What two settings that make the same model have in common; None if the input decides it."""
    scaling = setting.scaling(geometry)
    return None if scaling is None else of_scaling(scaling)


def compared(
    results: Results, experiment: str, trained: bool, factor: float | None = None
) -> Comparison:
    """The largest of :func:`comparisons`; empty if there is none."""
    return largest(comparisons(results, experiment, trained, factor))


def largest(sets: list[Comparison]) -> Comparison:
    """The first of sets in the order of :func:`comparisons`; empty if there is none."""
    return next(iter(sets), Comparison(()))


def _size(records: list[Record]) -> tuple[int, int]:
    """How many records a set has; first, how many of them are of a method."""
    return sum(record.run["method"] is not None for record in records), len(records)


def _comparison(records: list[Record], training: str) -> Comparison:
    grouped = {}
    for record in records:
        grouped.setdefault(Setting.of(record.run), []).append(record)
    rows = []
    for setting in sorted(grouped, key=lambda each: each.order):
        runs = grouped[setting]
        if any(_fine_tune(run) != _fine_tune(runs[0]) for run in runs):
            names = ", ".join(run.file for run in runs)
            raise InputError(
                f"{names}: fine-tunes with different settings cannot be seeds of one row; keep "
                f"one kind."
            )
        rows.append(Row(setting, tuple(runs)))
    return Comparison(tuple(rows), training)


def _fine_tune(run: Record) -> dict:
    of_a_seed = ("seed", "identity")
    return {name: value for name, value in (run.training or {}).items() if name not in of_a_seed}


def in_comparison(results: Results, setting: Setting) -> bool:
    """Whether a setting belongs to the main comparison: no ablation (see Results.ablated), no
    factors of a file. An option of a user's own method is none of an ablation, whatever its
    name."""
    options = dict(setting.options)
    ablated = () if setting.method in own_methods(results) else results.ablated
    varied = {name: value for name, value in options.items() if name in ablated}
    papers = {"n_hat": results.n_hat.get(setting.factor)}
    return "file" not in options and varied in ({}, papers)


@functools.cache
def own_methods(results: Results) -> list[str]:
    """The methods that were measured here and, of this model, not in results/: a user's own.

    Of a user's own model, those that were measured of no model in results/.
    """
    committed = models(RESULTS)
    known = [results.name] if results.name in committed else committed
    return [
        name
        for name in rope.METHODS
        if has(results.folder, results.name, name)
        and not any(has(RESULTS, model, name) for model in known)
    ]


def ablations(results: Results, experiment: str, option: str) -> list[dict[Any, Row]]:
    """The ablations that there are, as rows by value: without training, then fine-tuned.

    They are DPRoPE's rows by the value of one option, ascending, at least two, with all else equal;
    a record that does not state it has the default. If several combinations of other options and
    factor have such rows, it is the one with the most values. A value of the suite's ablations that
    selects the pairs of another setting has that setting's records.
    """
    both = [_ablation(results, experiment, option, trained) for trained in STATES]
    return list(filter(None, both))


def _ablation(results: Results, experiment: str, option: str, trained: bool) -> dict[Any, Row]:
    rows = compared(results, experiment, trained).rows
    default = rope.method_options(PROPOSED)[option]
    families = {}
    for row in rows:
        setting = row.setting
        value = setting.option(option, default)
        if setting.method == PROPOSED and value is not None:
            others = tuple(entry for entry in setting.options if entry[0] != option)
            families.setdefault((others, setting.factor), {})[value] = row
    others, factor = max(families, key=lambda key: len(families[key]), default=((), None))
    family = families.get((others, factor), {})
    if len(family) < 2:
        return {}
    measured = {
        _identity(row.setting, results.geometry): row.runs
        for row in reversed(rows)
        if row.setting.factor == factor
    }
    for value in _asked(results.name, option) - family.keys():
        setting = Setting.make(PROPOSED, dict(others) | {option: value}, factor)
        same = _identity(setting, results.geometry)
        if same and same in measured:
            family[value] = Row(setting, measured[same])
    # Keep the seeds that all values have: for another table, one value may have been trained with
    # more.
    seeds = set.intersection(*(set(row.seeds) for row in family.values()))
    return {value: family[value].of_seeds(seeds) for value in sorted(family)}


def _asked(model: str, option: str) -> set:
    """The values of an option that the ablations of the model's suite compare."""
    return {
        options[option]
        for suite in suites.find(model)
        for _, options in getattr(suite, "ABLATIONS", ())
        if option in options
    }


def factors(results: Results, experiment: str) -> list[float]:
    """The scaling factors of the records, ascending: 1 of a model as it is."""
    return sorted({float(record.run["factor"]) for record in results.records(experiment)})


def matched(ours: Row, other: Row) -> tuple[Row, Row, bool]:
    """Both rows with the runs of the seeds that they share, and whether they share any; with all
    their runs if not.

    Raises:
        InputError: a record was measured on other samples, or in another way, than the first.
    """
    first = ours.first
    for run in ours.runs + other.runs:
        if run.alike != first.alike:
            differing = sorted(
                name
                for name in {*run.alike, *first.alike}
                if run.alike.get(name) != first.alike.get(name)
            )
            raise InputError(
                f"{run.file} and {first.file} differ in {', '.join(differing)}, so they "
                f"cannot be compared; measure both alike."
            )
    shared = {*ours.seeds} & {*other.seeds}
    return ours.of_seeds(shared), other.of_seeds(shared), bool(shared)
