"""Factors that were learned: their records, and every method's loss beside theirs."""

import numpy as np

from analysis.beyond import loss_by_position
from analysis.comparison import Comparison, Row, comparisons, in_comparison
from analysis.results import Record, Results
from analysis.scores import Scores, over_texts
from analysis.settings import seed_count
from core import rope
from core.beyond.methods.given_factors import learned_from, learned_name
from core.errors import InputError
from core.setting import Setting

_PLACES = {"within": "within L", "beyond": "beyond L", "all": "within and beyond L"}


def factors(group: Row) -> np.ndarray:
    """λ_i of a row of :func:`groups`, float64 [seeds, pairs]."""
    return np.array([run.scores["factors"] for run in group.runs], dtype=np.float64)


def end(group: Row) -> str:
    """How long its learning took, and how it ended, for a note."""
    seeds = seed_count(len(group.runs))
    steps = ", ".join(f"{run.scores['steps_made']:,}" for run in group.runs)
    flat = all(run.scores["converged"] for run in group.runs)
    return (
        f"{seeds}: {steps} steps. The held-out loss "
        f"{'had stopped' if flat else 'was still'} falling."
    )


def methods(results: Results, rows: Comparison, variants: bool = True) -> list[Row]:
    """The rows of methods: without ablations, and without factors of a file, as learned ones are.

    Args:
        variants: also a method's rows with options where its row without them is there; those of n̂
            and of a covered length always are rows.
    """
    kept = ("n_hat", "covered_length")
    found = [row for row in rows.rows if in_comparison(results, row.setting)]
    plain = {row.setting.method for row in found if row.setting.plain()}
    return [
        row
        for row in found
        if variants or row.setting.plain(*kept) or row.setting.method not in plain
    ]


def groups(results: Results) -> list[Row]:
    """All that was learned, a row for each setting that learning began with, by factor.

    Raises:
        InputError: two records of a row differ in more than their seed.
    """
    by_start: dict[Setting, list[Record]] = {}
    for record in results.records("learned"):
        by_start.setdefault(Setting.of(record.run), []).append(record)
    for first, *others in by_start.values():
        for other in others:
            if other.run | {"seed": None} != first.run | {"seed": None}:
                raise InputError(
                    f"{first.path} and {other.path} were learned otherwise than by their seed, so "
                    "they are not seeds of one row; keep one kind."
                )
    order = sorted(by_start, key=lambda start: (start.factor, start.order))
    return [Row(start, tuple(by_start[start])) for start in order]


def final_losses(group: Row) -> Scores:
    """The losses of the held-out text at the end of learning, over seeds."""
    ends = [run.scores["curve"][-1] for run in group.runs]
    return {
        where: over_texts([[end[place]["mean"]] for end in ends])
        for place, where in _PLACES.items()
    }


def scored(results: Results, factor: float) -> tuple[dict[str, Row], Row] | None:
    """Untrained settings on the same texts by name, and the learned factors that the others are
    compared with.

    Those factors are of the start from which gradient descent came to the least loss over all
    positions. Learned factors have one row for each start, with a record per seed. The texts are
    the largest set on which any were scored. None if none were.
    """
    sets = comparisons(results, "loss_by_position", False, factor)
    untrained = next((rows for rows in sets if any(map(_start, rows.rows))), Comparison(()))
    rows = {row.setting.name: row for row in methods(results, untrained, variants=False)}
    runs: dict[str, list[Record]] = {}
    for row in untrained.rows:
        if start := _start(row):
            runs.setdefault(start, []).extend(row.runs)
    if not runs:
        return None
    together = {
        learned_name(method): Row(Setting("factors", (("from", method),), factor), tuple(of_method))
        for method, of_method in runs.items()
    }
    least = min(together.values(), key=lambda row: loss_by_position.blocks(*row.runs).mean())
    return rows | together, least


def _start(row: Row) -> str | None:
    """What a row's factors were learned from; None if they were not learned."""
    start = learned_from(dict(row.setting.options))
    return start[0] if start else None


def inverse(results: Results, setting: Setting) -> np.ndarray | None:
    """λ_i = θ_i/θ̂_i [pairs] of a setting; None if more than the geometry decides it."""
    geometry = results.geometry
    method = rope.METHODS.get(setting.method)
    scaling = setting.scaling(geometry) if method and method.ready else None
    return None if scaling is None else geometry.inv_freq / scaling.inv_freq
