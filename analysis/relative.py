"""Which measure orders selections of pairs by their loss: the paper's disturbance, or that of relative positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from core.relative import Profile, relative_disturbance
from scipy.stats import rankdata

from analysis.results import Results
from analysis.scores import Score, stacked
from core.disturbance import CONVENTIONS
from core.errors import InputError
from eval.intervals import RESAMPLES, resampled_interval

SCALE_FREE, MEASURED = "scale-free", "measured"  # the attention profile of the relative measure
BEYOND, ALL = "beyond", "all"  # the positions over which the loss is averaged


@dataclass(frozen=True)
class Correlation:
    """Spearman's ρ of a measure with the loss, over the selections of experiments.selections.

    Attributes:
        measure: a convention of the paper's disturbance, or the profile of the relative one.
        positions: "beyond" L, or "all" up to L'.
        score: ρ with its interval.
    """

    measure: str
    positions: str
    score: Score


def profile(results: Results) -> Profile | None:
    """The measured attention profile of the scale at its L, if there is one."""
    for record in results.records("attention_distance"):
        if record["length"] == results.scale.context_length:
            return Profile(record["distances"], record["mass"])
    return None


def measures(results: Results, run: dict) -> dict[str, np.ndarray]:
    """Each measure's values for a record's selections, [selections]."""
    rows, geometry, factor = run["scores"], results.scale.geometry, run["factor"]
    interpolated = np.zeros((len(rows), geometry.pairs), dtype=bool)
    for row, chosen in zip(rows, interpolated):
        pairs = row["interpolated_pairs"]
        if pairs and not 0 <= min(pairs) <= max(pairs) < geometry.pairs:
            raise InputError(
                f"a selection of {results.scale.name} names pairs that the model does not have; measure it again."
            )
        chosen[pairs] = True
    found = {name: np.array([row["disturbance"][name] for row in rows]) for name in CONVENTIONS}
    measured = profile(results)
    for name, own in [(SCALE_FREE, None)] + ([(MEASURED, measured)] if measured else []):
        kept, stretched = relative_disturbance(geometry, factor, [1.0, factor], own).T  # [pairs] each
        found[name] = np.where(interpolated, stretched, kept).mean(axis=1)
    return found


def correlations(results: Results, run: dict) -> list[Correlation]:
    """The correlations for a record of experiments.selections; intervals resample selections and blocks together.

    The draws equal those of the experiment, so that the paper's measure has the interval that the record states.
    """
    block, length = run["block"], results.scale.context_length
    losses = stacked([run["blocks"][key] for key in run["selections"]])  # [selections, blocks]
    if len(losses) != len(run["scores"]):
        raise InputError(
            f"the record of selections of {results.scale.name} has too few or too many losses; measure it again."
        )
    found = []
    for positions, part in ((BEYOND, losses[:, length // block :]), (ALL, losses)):
        rng = np.random.default_rng(0)
        draws = [(rng.integers(0, len(part), len(part)), rng.integers(0, part.shape[1], part.shape[1]))
                 for _ in range(RESAMPLES)]  # fmt: skip
        drawn = np.array([rows for rows, _ in draws])
        means = np.array([part[rows][:, columns].mean(axis=1) for rows, columns in draws])
        for name, values in measures(results, run).items():
            rho = spearman(values, part.mean(axis=1))
            resampled = spearman(values[drawn], means)  # NaN if the same selection was drawn every time
            interval = resampled_interval(float(rho), resampled[np.isfinite(resampled)], len(part))
            found.append(Correlation(name, positions, Score.of(interval)))
    return found


def spearman(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Spearman's ρ along the last axis; NaN if one of the two is constant."""
    ranks = [rankdata(values, axis=-1) for values in (left, right)]
    left, right = (each - each.mean(axis=-1, keepdims=True) for each in ranks)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (left * right).sum(axis=-1) / np.sqrt((left**2).sum(axis=-1) * (right**2).sum(axis=-1))
