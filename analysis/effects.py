"""What the paper itself measured: the effect that each of its claims states, and the spread of its own numbers.

Everything comes from the published tables (results/paper/). Averages are computed from their parts, because some
printed averages do not agree with them. An effect on several models is the mean over the models.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from analysis import published
from analysis.settings import tokens
from core import rope

if TYPE_CHECKING:
    import pandas as pd

# The averages of the paper's tables by their names here, and how many of the first parts each leaves out.
_AVERAGES = {"Avg.": 0, "Avg.>L": 1}
_LENGTH = published.GEOMETRY.context_length


def rivals(table: str) -> list[str]:
    """The methods that the paper compares its own with in a table."""
    return [name for name in published.table(table)["method"].unique() if name not in (rope.ORIGINAL, rope.OURS)]


def advantage(table: str, rival: str, factor: float, metric: str) -> float | None:
    """DPRoPE's score minus a rival's in the paper; None if the paper does not state both.

    Args:
        metric: an average, by its name in the tables here.
    """
    if metric not in _AVERAGES:
        return None
    scores = [_by_model(_rows(table, method, factor), "metric", "score") for method in (rope.OURS, rival)]
    both = [(ours, scores[1][model]) for model, ours in scores[0].items() if model in scores[1]]
    return _mean([_average(ours, metric) - _average(other, metric) for ours, other in both])


def perplexity_advantage(rival: str, factor: float) -> float | None:
    """DPRoPE's loss at L' minus a rival's in nats per token, from the paper's perplexities; None if it lacks them."""
    length = tokens(round(_LENGTH * factor))
    values = [_by_model(_rows("perplexity", method), "context_length", "perplexity") for method in (rope.OURS, rival)]
    both = [(ours.get(length), values[1].get(model, {}).get(length)) for model, ours in values[0].items()]
    return _mean([math.log(ours / other) for ours, other in both if ours and other])


def kept_advantage(factor: float) -> float | None:
    """The per cent of its RULER score at L that DPRoPE keeps at L', minus the same of the unextended model."""
    near, far = tokens(_LENGTH), tokens(round(_LENGTH * factor))
    kept = [
        {
            model: 100 * scores[far] / scores[near]
            for model, scores in _by_model(_rows("ruler", method, factor), "metric", "score").items()
            if {near, far} <= scores.keys()
        }
        for method in (rope.OURS, rope.ORIGINAL)
    ]
    return _mean([own - kept[1][model] for model, own in kept[0].items() if model in kept[1]])


def rank_correlation(factor: float) -> float | None:
    """Spearman's ρ of disturbance and perplexity at L', over the methods for which the paper states both."""
    moved = {method: value for (method, s), value in published.disturbance().items() if s == factor}
    length, found = tokens(round(_LENGTH * factor)), []
    for _, rows in published.table("perplexity").groupby("model"):
        loss = {row.method: row.perplexity for row in rows.itertuples() if row.context_length == length}
        both = [(moved[method], loss[method]) for method in moved if method in loss]
        if len(both) > 2:
            found.append(float(np.corrcoef([rankdata(values) for values in zip(*both)])[0, 1]))
    return _mean(found)


def ablated(table: str, metric: str) -> dict[float, float]:
    """The paper's scores by the value of the option that a table varies."""
    frame = published.table(table)
    return {
        float(value): _average(dict(zip(rows["metric"], rows["score"])), metric)
        for value, rows in frame.groupby(frame.columns[0])
    }


def spread(values: list[float]) -> float:
    """The largest value minus the smallest."""
    return max(values) - min(values)


def time(phase: str) -> float | None:
    """The paper's time of DPRoPE relative to PI, for a phase."""
    frame = published.table("time_cost")
    return _mean(list(frame[(frame["method"] == rope.OURS) & (frame["phase"] == phase)]["relative_to_pi"]))


def time_resolution() -> float:
    """Half a unit of the last digit of the paper's times: a smaller difference would not show in its table."""
    digits = (len(f"{value:.9g}".partition(".")[2]) for value in published.table("time_cost")["relative_to_pi"])
    return 0.5 * 10.0 ** -max(digits)


def _rows(table: str, method: str, factor: float | None = None) -> pd.DataFrame:
    """The rows of a method at a factor; a method that is learned once for all factors has them at every factor."""
    frame = published.table(table)
    frame = frame[frame["method"] == method]
    known = rope.METHODS.get(method)
    if factor is None or method == rope.ORIGINAL or (known and known.start):
        return frame
    return frame[frame["factor"] == factor]


def _by_model(rows: pd.DataFrame, name: str, value: str) -> dict[str, dict[str, float]]:
    return {model: dict(zip(own[name], own[value])) for model, own in rows.groupby("model")}


def _average(scores: dict[str, float], metric: str) -> float:
    parts = [score for name, score in scores.items() if not name.startswith("Avg")]
    return float(np.mean(parts[_AVERAGES[metric] :]))


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
