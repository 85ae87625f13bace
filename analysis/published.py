"""What the paper itself measured: its published numbers in results/paper/NAME.csv, and the effects
that they show.

An effect is what a claim of the paper states as a number. Averages are computed from their parts,
because some printed averages do not agree with them. An effect on several models is the mean over
the models.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from analysis.scores import Score
from core import ORIGINAL, PROPOSED, rope
from core.geometry import RopeGeometry
from core.setting import tokens
from records import RESULTS

# A table's column of numbers, and the column that says what they measure.
_METRICS = {
    "score": "metric",
    "perplexity": "context_length",
    "disturbance_e3": "context_length",
    "relative_to_pi": "phase",
}
_RUN = ("model", "method", "factor", "n_hat", "intervals")  # the columns that say what was run
# The geometry of the paper's models, which is all that its table of disturbances depends on.
GEOMETRY = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)
_LENGTH = GEOMETRY.context_length
# Half a unit of the last digit of the paper's times: a smaller difference would not show in its
# table.
TIME_RESOLUTION = 0.005
# The averages of the paper's tables by their names here, and how many of the first parts each
# leaves out.
_AVERAGES = {"Avg.": 0, "Avg.>4k": 1, "Avg.>L": 1}


@functools.cache
def table(name: str) -> pd.DataFrame:
    """The numbers of one table, one per line."""
    return pd.read_csv(RESULTS / "paper" / f"{name}.csv")


@functools.cache
def runs(name: str) -> list[tuple[dict, dict[str, float]]]:
    """What was run of a table, by those of its columns that say it, and its scores by metric."""
    frame = table(name)
    keys = [key for key in _RUN if key in frame]
    value, metric = next((key, of) for key, of in _METRICS.items() if key in frame)
    found = []
    for run, lines in frame.groupby(keys, dropna=False, sort=False):
        stated = {key: each for key, each in zip(keys, run) if pd.notna(each)}
        found.append((stated, dict(zip(lines[metric], lines[value]))))
    return found


@functools.cache
def rows(name: str) -> dict[str, dict[str, dict[str, Score]]]:
    """The paper's scores by model and the row's name; an ablation's rows are named by the option's
    value."""
    by_model = {}
    for run, scores in runs(name):
        method = run.get("method")
        if method:
            row = with_factor(rope.METHODS[method].title, method, run.get("factor"))
        else:
            row = str(*run.values())
        of_model = by_model.setdefault(run.get("model", "LLaMA2-13B"), {})
        of_model[row] = {metric: Score(score) for metric, score in scores.items()}
    return by_model


def with_factor(title: str, method: str | None, factor: float | None) -> str:
    """A row's name with its s, or "s ≤" for a learned method, whose RoPE model follows the input's
    length up to s."""
    if factor is None:
        return title
    learned = is_learned(method)
    return f"{title} (s {'≤' if learned else '='} {factor:g})"


def is_learned(method: str | None) -> bool:
    """Whether a method has learned parameters, so that the paper has one row of it for all s."""
    return method in rope.METHODS and rope.METHODS[method].start is not None


def rivals(name: str) -> list[str]:
    """The methods that the paper compares its own with in a table."""
    listed = dict.fromkeys(run["method"] for run, _ in runs(name))
    return [method for method in listed if method not in (ORIGINAL, PROPOSED)]


def advantage(name: str, rival: str, factor: float, metric: str) -> float | None:
    """DPRoPE's score minus a rival's in the paper; None if the paper does not state both.

    Args:
        metric: an average, by its name in the tables here.
    """
    if metric not in _AVERAGES:
        return None
    return _difference(name, rival, factor, lambda scores: average(scores, metric))


def perplexity_advantage(rival: str, factor: float) -> float | None:
    """DPRoPE's loss at L' minus a rival's in nats per token, from the paper's perplexities; None if
    it lacks them."""
    length = tokens(round(_LENGTH * factor))
    if length not in set(table("perplexity")["context_length"]):
        return None
    return _difference("perplexity", rival, factor, lambda scores: math.log(scores[length]))


def _difference(
    name: str, rival: str, factor: float, value: Callable[[dict[str, float]], float]
) -> float | None:
    """The mean over models of DPRoPE's value minus a rival's; None if no model has both.

    Args:
        value: computes it from a model's scores.
    """
    ours, others = (
        {
            run["model"]: value(scores)
            for run, scores in runs(name)
            if run["method"] == method
            and (is_learned(method) or run.get("factor", factor) == factor)
        }
        for method in (PROPOSED, rival)
    )
    gaps = [ours[model] - others[model] for model in ours if model in others]
    return float(np.mean(gaps)) if gaps else None


def ablated(name: str, metric: str) -> dict[float, float]:
    """The paper's scores by the value of the option that a table varies.

    Args:
        metric: an average, by its name in the tables here; the mean of all parts stands for others.
    """
    return {float(*run.values()): average(scores, metric) for run, scores in runs(name)}


def average(scores: dict[str, float], metric: str) -> float:
    """An average of a row, by its name here, from the row's parts; of all for another metric."""
    parts = [score for name, score in scores.items() if not name.startswith("Avg")]
    return float(np.mean(parts[_AVERAGES.get(metric, 0) :]))
