"""Which engine computes what was exported: the records of experiments.beyond.served."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.results import Results
from analysis.scores import Score
from analysis.settings import Setting

# Tolerances in nats: for the mean |difference| over positions, and for quantised weights, whose rounding changes every
# position, for the difference of mean losses.
EXACT, QUANTISED = 1e-3, 1e-2
_EXACT_WEIGHTS = {"checkpoint", "F32"}
RIGHT, DROPPED, WRONG = "right", "dropped", "wrong"


@dataclass(frozen=True)
class Served:
    """A method as served by an engine.

    Attributes:
        engine: its name.
        weights: what the engine loaded: a checkpoint, or a GGUF file's type.
        setting: the method.
        losses: mean losses in nats by "engine", "transformers" and "unextended".
        mean, largest: the mean and the largest |difference| from transformers over positions, in nats.
        verdict: RIGHT; DROPPED if the losses are those of the unextended model; else WRONG.
        length, scored: the tokens read, and how many of the last ones were scored.
        trained: whether the model was fine-tuned.
    """

    engine: str
    weights: str
    setting: Setting
    losses: dict[str, Score]
    mean: float
    largest: float
    verdict: str
    length: int
    scored: int
    trained: bool


def served(results: Results) -> list[Served]:
    """The records' results, by engine and method."""
    rows = [_served(record) for record in results.records("served") if "engine" in record]
    return sorted(rows, key=lambda row: (row.engine, row.weights, row.setting.order))


def right_engines(results: Results) -> set[str]:
    """The engines that compute every export that they were given; GGUF files of another converter do not count."""
    verdicts: dict[str, set[str]] = {}
    for row in served(results):
        if not row.weights.endswith(".gguf"):
            verdicts.setdefault(row.engine, set()).add(row.verdict)
    return {engine for engine, own in verdicts.items() if own == {RIGHT}}


def _served(record: dict) -> Served:
    scores, answer = record["scores"], record["answer"]["served"]
    apart = scores["apart_from"]
    return Served(
        engine=record["engine"]["name"],
        weights=record["engine"].get("gguf") or answer,
        setting=Setting.of(record),
        losses={name: Score.of(loss) for name, loss in scores["losses"].items()},
        mean=apart["transformers"]["mean"],
        largest=apart["transformers"]["largest"],
        verdict=_verdict(apart, answer in _EXACT_WEIGHTS),
        length=record["tokens"],
        scored=record["scored"],
        trained="training" in record,
    )


def _verdict(apart: dict[str, dict], exact: bool) -> str:
    """The verdict, by the nearer of the two models. Positions count, because means may agree where no position does."""
    nearer = min(("transformers", "unextended"), key=lambda name: apart[name]["mean"])
    near = apart[nearer]["mean"] <= EXACT if exact else abs(apart[nearer]["of_means"]) <= QUANTISED
    return {"transformers": RIGHT, "unextended": DROPPED}[nearer] if near else WRONG
