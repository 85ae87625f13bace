"""results/all.csv: every score of every model as a line, to read with pandas."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from analysis import disturbance, metrics, results
from analysis.comparison import Metrics, comparisons
from analysis.results import Results
from analysis.scores import Score, Scores
from analysis.settings import STATES
from core import discovery
from core.setting import Setting

# By experiment: its scores by metric, and their unit.
SCORES: dict[str, tuple[Metrics, str]] = {
    "longbench_e": (metrics.longbench_e, "%"),
    "open_llm": (metrics.open_llm, "%"),
    "passkey": (metrics.passkey, "%"),
    "perplexity": (metrics.perplexity, "perplexity"),
    "ruler": (metrics.ruler, "%"),
}
_NATS = "nats per token"
losses = discovery.module("analysis.beyond.loss_by_position")
keys = discovery.module("analysis.beyond.needles")
learned = discovery.module("analysis.beyond.learned")
if losses:
    SCORES["needles"] = (keys.places, "nats a key, found in %")
    SCORES["loss_by_position"] = (lambda run: {**losses.ranges(run), **losses.places(run)}, _NATS)


def table(folder: Path) -> str:
    """CSV, a line for each score.

    - `part` names the folder of records that stand apart from the model's others.
    - `set` numbers what an experiment was measured on, and how; the largest set without training is
      the first.
    - `training` numbers what fine-tunes read, and how they were trained; 0 is without training.
    - `per_book` among the options is of a fine-tune that read so many sequences of each book.
    - `n` counts samples or books of each seed. An empty interval is none.
    """
    lines = [
        line
        for measured in results.every(folder)
        for part in (measured, *measured.parts())
        for line in _lines(part)
    ]
    return pd.DataFrame(lines).to_csv(index=False, float_format="%.6g")


# A setting; how it was fine-tuned or None, and the number of that; the experiment, the number of
# its set, its scores by metric, and their unit.
Measured = tuple[Setting, tuple[dict | None, int], str, int, Scores, str]
UNTRAINED = None, 0


def _measured(measured: Results) -> Iterator[Measured]:
    """The disturbances of all methods, once of a model; by SCORES, one line for all seeds of a
    setting; learned factors; times of a training step and of a forward pass."""
    for factor in measured.factors if measured.plain and not measured.part else ():
        for setting in disturbance.settings(measured, factor):
            if computed := disturbance.compute(measured.plain, setting):
                scores = {"average": Score(computed.average)}
                yield setting, UNTRAINED, "disturbance", 1, scores, "10⁻³ nat"
    trainings = {"": 0}
    for experiment, (of, unit) in SCORES.items():
        numbers: dict[str, int] = {}
        sets = (comparisons(measured, experiment, trained) for trained in STATES)
        for rows in itertools.chain(*sets):
            alike = json.dumps(rows.first.alike, sort_keys=True)
            number = numbers.setdefault(alike, len(numbers) + 1)
            training = trainings.setdefault(rows.training, len(trainings))
            for row in rows.rows:
                fine_tune = row.first.training, training
                yield row.setting, fine_tune, experiment, number, row.scores(of), unit
    if learned:
        for group in sorted(learned.groups(measured), key=lambda each: each.setting.order):
            yield group.setting, UNTRAINED, "learned", 1, learned.final_losses(group), _NATS
    for record in measured.records("time_cost"):
        for setting, row, time in metrics.times(record):
            if not row["again"]:
                yield setting, UNTRAINED, "time_cost", 1, {row["phase"]: time}, "of PI's time"


def _lines(measured: Results) -> Iterator[dict]:
    for setting, (training, kind), experiment, number, scores, unit in _measured(measured):
        options = dict(setting.options)
        if training and "per_book" in training:
            options["per_book"] = training["per_book"]
        if setting.last:
            options["last"] = setting.last
        for metric, score in scores.items():
            if score is not None:
                yield {
                    "model": measured.name,
                    "part": measured.part,
                    "method": setting.method,
                    "options": " ".join(f"{name}={value}" for name, value in options.items()),
                    "factor": setting.factor,
                    "trained": training is not None,
                    "training": kind,
                    "experiment": experiment,
                    "set": number,
                    "metric": metric,
                    "value": score.mean,
                    "low": score.low,
                    "high": score.high,
                    "n": score.n,
                    "unit": unit,
                }
