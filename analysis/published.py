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
from analysis.settings import methods, tokens
from core import ORIGINAL, PROPOSED
from core.geometry import RopeGeometry
from experiments.kit.records import RESULTS

# A table's column of numbers, and the column that says what they measure.
_METRICS = {"score": "metric", "perplexity": "context_length", "relative_to_pi": "phase"}
# The geometry of the paper's models, which is all that its table of disturbances depends on.
GEOMETRY = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)
_LENGTH = GEOMETRY.context_length
# The averages of the paper's tables by their names here, and how many of the first parts each
# leaves out.
_AVERAGES = {"Avg.": 0, "Avg.>4k": 1, "Avg.>L": 1}


@functools.cache
def table(name: str) -> pd.DataFrame:
    """The numbers of one table, one per line."""
    return pd.read_csv(RESULTS / "paper" / f"{name}.csv")


@functools.cache
def rows(name: str) -> dict[str, dict[str, dict[str, Score]]]:
    """The paper's scores by model and the row's name; an ablation's rows are named by the option's
    value."""
    by_model: dict[str, dict[str, dict[str, Score]]] = {}
    for line in table(name).to_dict("records"):
        if "model" in line:
            method = line["method"]
            factor = line.get("factor")
            registered = methods().get(method)
            title = registered.title if registered else method
            model = line["model"]
            row = with_factor(
                title[:1].upper() + title[1:], method, None if pd.isna(factor) else factor
            )
            value, metric = next((key, of) for key, of in _METRICS.items() if key in line)
        else:
            model = "LLaMA2-13B"
            row = str(next(iter(line.values())))
            value = "score"
            metric = "metric"
        by_model.setdefault(model, {}).setdefault(row, {})[line[metric]] = Score(float(line[value]))
    return by_model


def disturbance() -> dict[tuple[str, float], float]:
    """The paper's averaged disturbances in 10⁻³ nat, by method and factor."""
    return {
        (row.method, float(row.factor)): row.disturbance_e3
        for row in table("disturbance").itertuples()
    }


def with_factor(title: str, method: str | None, factor: float | None) -> str:
    """A row's name with its s, or "s ≤" for a learned method, whose RoPE model follows the input's
    length up to s."""
    if factor is None:
        return title
    learned = method in methods() and methods()[method].start is not None
    return f"{title} (s {'≤' if learned else '='} {factor:g})"


def rivals(name: str) -> list[str]:
    """The methods that the paper compares its own with in a table."""
    return [
        method for method in table(name)["method"].unique() if method not in (ORIGINAL, PROPOSED)
    ]


def advantage(name: str, rival: str, factor: float, metric: str) -> float | None:
    """DPRoPE's score minus a rival's in the paper; None if the paper does not state both.

    Args:
        metric: an average, by its name in the tables here.
    """
    if metric not in _AVERAGES:
        return None
    return _difference(name, rival, factor, lambda scores: _average(scores, metric))


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
    frame = table(name)
    if "factor" in frame:
        learned = [
            method for method, registered in methods().items() if registered.start
        ]  # once for all factors
        frame = frame[frame["factor"].isin([factor, np.nan]) | frame["method"].isin(learned)]
    column = "perplexity" if name == "perplexity" else "score"
    scores = {
        key: dict(zip(rows[_METRICS[column]], rows[column]))
        for key, rows in frame.groupby(["model", "method"])
    }
    pairs = [
        (scores.get((model, PROPOSED)), scores.get((model, rival)))
        for model in frame["model"].unique()
    ]
    gaps = [value(ours) - value(others) for ours, others in pairs if ours and others]
    return float(np.mean(gaps)) if gaps else None


def ablated(name: str, metric: str) -> dict[float, float]:
    """The paper's scores by the value of the option that a table varies.

    Args:
        metric: an average, by its name in the tables here; the mean of all parts stands for others.
    """
    frame = table(name)
    return {
        float(value): _average(dict(zip(rows["metric"], rows["score"])), metric)
        for value, rows in frame.groupby(frame.columns[0])
    }


def time_resolution() -> float:
    """Half a unit of the last digit of the paper's times: a smaller difference would not show in
    its table."""
    digits = (
        len(f"{value:.9g}".partition(".")[2]) for value in table("time_cost")["relative_to_pi"]
    )
    return 0.5 * 10.0 ** -max(digits)


def _average(scores: dict[str, float], metric: str) -> float:
    parts = [score for name, score in scores.items() if not name.startswith("Avg")]
    return float(np.mean(parts[_AVERAGES.get(metric, 0) :]))
