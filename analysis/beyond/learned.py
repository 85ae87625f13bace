"""Learned factors: the records of experiments.beyond.learned, and every method's loss beside theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.beyond import loss_by_position
from analysis.comparison import Comparison, Row, in_comparison
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import Setting
from core import rope
from core.beyond.methods.given_factors import learned_from, learned_name
from core.errors import InputError
from eval.intervals import mean_interval


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
    runs: tuple[dict, ...]

    @property
    def name(self) -> str:
        """The name in tables and figures."""
        return learned_name(self.method)

    @property
    def factors(self) -> np.ndarray:
        """λ_i, float64 [seeds, pairs]."""
        return np.array([run["factors"] for run in self.runs], dtype=np.float64)

    @property
    def converged(self) -> bool:
        """Whether the held-out loss of every run was flat at the end."""
        return all(run["converged"] for run in self.runs)


def start_of(setting: Setting) -> tuple[str, int] | None:
    """The start and the seed of factors that were learned; None if a setting's are not."""
    return learned_from(dict(setting.options))


def groups(results: Results) -> list[Learned]:
    """All that was learned, by factor, then in the order of the registry.

    Raises:
        InputError: a record has not one factor for each pair.
    """
    records: dict[tuple, list[dict]] = {}
    pairs = results.model.geometry.pairs
    for run in results.require("learned"):
        if len(run["factors"]) != pairs:
            raise InputError(f"{run['file']} has {len(run['factors'])} factors for {pairs} pairs; learn them again.")
        records.setdefault((float(run["factor"]), run["method"]), []).append(run)
    known = [*rope.METHODS]

    def order(key: tuple[float, str]) -> tuple:
        return key[0], known.index(key[1]) if key[1] in known else len(known), key[1]

    return [Learned(key[1], key[0], tuple(records[key])) for key in sorted(records, key=order)]


@dataclass(frozen=True)
class Scored:
    """Every untrained setting on one text; learned factors have one row for all their seeds.

    Attributes:
        rows: the rows by name: one per method, and one per start of learned factors with a record per seed.
        bound: the name of the learned factors with the least loss over all positions; None if none was scored.
        first: one record, for what all have in common.
    """

    rows: dict[str, Row]
    bound: str | None
    first: dict


def scored(results: Results, factor: float) -> Scored | None:
    """The settings of the records of experiments.beyond.loss_by_position; None if there are none at this factor."""
    comparison = loss_by_position.untrained(results, factor)
    rows, learned = {}, {}
    for row in comparison.rows:
        if start := start_of(row.setting):
            learned.setdefault(start[0], []).extend(row.runs)
        elif in_comparison(results.model)(row):
            rows[row.setting.name] = row
    if not comparison:
        return None
    together = {
        learned_name(method): Row(Setting("factors", (("from", method),), factor), tuple(runs))
        for method, runs in learned.items()
    }
    bound = min(together, key=lambda name: _loss(together[name]), default=None)
    return Scored(rows | together, bound, comparison.first)


def level(row: Row, beyond: bool = True) -> Score:
    """The loss within or beyond L, as each block's mean over seeds, with a bootstrap interval over blocks."""
    edge = row.first["ranges"][1]["start"] // row.first["block"]
    losses = loss_by_position.blocks(*row.runs).mean(axis=0)
    return Score.of(mean_interval((losses[:, edge:] if beyond else losses[:, :edge]).ravel()))


def _loss(row: Row) -> float:
    """The mean loss over all positions and seeds."""
    return float(loss_by_position.blocks(*row.runs).mean())


def inverse(results: Results, setting: Setting) -> np.ndarray | None:
    """λ_i = θ_i/θ̂_i [pairs] of a setting; None if more than the geometry decides it."""
    method = rope.METHODS.get(setting.method)
    if method is None or not method.ready:
        return None
    try:
        scaling = rope.scale(results.model.geometry, setting.method, setting.factor, **dict(setting.options))
    except InputError:  # the record is from another version, or its file is not here
        return None
    return results.model.geometry.inv_freq / scaling.inv_freq


def compared(results: Results, factor: float) -> Comparison:
    """The settings of the comparison at a factor, except learned ones."""
    rows = loss_by_position.untrained(results, factor).only(in_comparison(results.model))
    return rows.only(lambda row: start_of(row.setting) is None)
