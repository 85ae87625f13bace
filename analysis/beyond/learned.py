"""Factors that were learned: their records, and every method's loss beside theirs."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.beyond import loss_by_position
from analysis.comparison import Comparison, Row, in_comparison
from analysis.results import Record, Results
from analysis.scores import Scores, over_texts
from analysis.settings import Setting, seed_count
from core import rope
from core.beyond.methods.given_factors import learned_from, learned_name
from core.errors import InputError

_PLACES = {"within": "within L", "beyond": "beyond L", "all": "within and beyond L"}


@dataclass(frozen=True)
class Learned:
    """What was learned from one start at one scaling factor.

    Attributes:
        method: the method whose factors it started from.
        factor: s.
        runs: the records, one per seed.
    """

    method: str
    factor: float
    runs: tuple[Record, ...]

    @property
    def name(self) -> str:
        """The name in tables and figures."""
        return learned_name(self.method)

    @property
    def factors(self) -> np.ndarray:
        """λ_i, float64 [seeds, pairs]."""
        return np.array([run.scores["factors"] for run in self.runs], dtype=np.float64)

    @property
    def end(self) -> str:
        """How long it took, and how it ended, for a note."""
        seeds = seed_count(len(self.runs))
        steps = " and ".join(dict.fromkeys(f"{run.scores['steps_made']:,}" for run in self.runs))
        flat = all(run.scores["converged"] for run in self.runs)
        return (
            f"{seeds}, {steps} steps. The held-out loss "
            f"{'had stopped' if flat else 'was still'} falling."
        )


def methods(results: Results, rows: Comparison, variants: bool = True) -> list[Row]:
    """The rows of methods: without ablations, and without factors that were learned.

    Args:
        variants: also a method's rows with options where its row without them is there; those of n̂
            and of a covered length always are rows.
    """
    listed = in_comparison(results)
    kept = ("n_hat", "covered_length")
    found = [
        row for row in rows.rows if listed(row) and not learned_from(dict(row.setting.options))
    ]
    plain = {row.setting.method for row in found if row.setting.plain()}
    return [
        row
        for row in found
        if variants or row.setting.plain(*kept) or row.setting.method not in plain
    ]


def groups(results: Results) -> list[Learned]:
    """All that was learned, by factor, then in the order of the registry.

    Raises:
        InputError: a record has not one factor for each pair.
    """
    records: dict[tuple, list[Record]] = {}
    pairs = results.geometry.pairs
    for record in results.require("learned"):
        count = len(record.scores["factors"])
        if count != pairs:
            raise InputError(
                f"{record.file} has {count} factors for {pairs} pairs; learn them again."
            )
        records.setdefault((float(record.run["factor"]), record.run["method"]), []).append(record)
    order = sorted(records, key=lambda key: (key[0], Setting(key[1]).order, key[1]))
    return [Learned(method, factor, tuple(records[factor, method])) for factor, method in order]


def final_losses(results: Results) -> Iterator[tuple[Setting, Scores]]:
    """By the setting that learning began with: the losses of the held-out text at its end, over
    seeds."""
    by_start: dict[Setting, list[Record]] = {}
    for run in results.records("learned"):
        by_start.setdefault(Setting.of(run.run), []).append(run)
    for setting, runs in by_start.items():
        ends = [run.scores["curve"][-1] for run in runs]
        yield (
            setting,
            {
                where: over_texts([[end[place]["mean"]] for end in ends])
                for place, where in _PLACES.items()
            },
        )


def scored(results: Results, factor: float) -> tuple[dict[str, Row], Row] | None:
    """Untrained settings on the same texts by name, and the learned factors that the others are
    compared with.

    Those factors are of the start from which gradient descent came to the least loss over all
    positions. Learned factors have one row for each start, with a record per seed. None if none
    were scored.
    """
    untrained = loss_by_position.untrained(results, factor)
    rows = {row.setting.name: row for row in methods(results, untrained, variants=False)}
    runs: dict[str, list[Record]] = {}
    for row in untrained.rows:
        if start := learned_from(dict(row.setting.options)):
            runs.setdefault(start[0], []).extend(row.runs)
    if not runs:
        return None
    together = {
        learned_name(method): Row(Setting("factors", (("from", method),), factor), tuple(of_method))
        for method, of_method in runs.items()
    }
    least = min(together.values(), key=lambda row: loss_by_position.blocks(*row.runs).mean())
    return rows | together, least


def inverse(results: Results, setting: Setting) -> np.ndarray | None:
    """λ_i = θ_i/θ̂_i [pairs] of a setting; None if more than the geometry decides it."""
    geometry = results.geometry
    method = rope.METHODS.get(setting.method)
    scaling = setting.scaling(geometry) if method and method.ready else None
    return None if scaling is None else geometry.inv_freq / scaling.inv_freq
