"""Which engine computes what was exported: from the records of experiments.beyond.served, and the engines' sources."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.results import Results
from analysis.scores import Score
from analysis.settings import Setting
from experiments.kit.records import RESULTS

SOURCES = Path(__file__).with_name("serving_sources.csv")
FAMILIES = RESULTS / "families.csv"  # written by tools.families
SERVERS = RESULTS / "servers.csv"  # written by tools.servers
# Tolerances in nats: for the mean |difference| over positions, and for quantised weights, whose rounding changes every
# position, for the difference of mean losses.
EXACT, QUANTISED = 1e-3, 1e-2
_EXACT_WEIGHTS = {"checkpoint", "F32"}
RIGHT, DROPPED, WRONG, UNKNOWN = "right", "dropped", "wrong", "not measured"
REFERENCE = "reference"  # what the others are compared with


@dataclass(frozen=True)
class Served:
    """A method as served by an engine.

    Attributes:
        engine, version: the engine.
        weights: what the engine loaded: a checkpoint, or a GGUF file's type.
        setting: the method.
        losses: mean losses in nats by "engine", "transformers" and "unextended".
        mean, largest: the mean and the largest |difference| from transformers over positions, in nats.
        verdict: RIGHT; DROPPED if the losses are those of the unextended model; else WRONG.
        tempered: whether the method has an attention factor.
        length, scored: the tokens read, and how many of the last ones were scored.
        trained: whether the model was fine-tuned.
    """

    engine: str
    version: str
    weights: str
    setting: Setting
    losses: dict[str, Score]
    mean: float
    largest: float
    verdict: str
    tempered: bool
    length: int
    scored: int
    trained: bool


@dataclass(frozen=True)
class Engine:
    """A line of the matrix; `remedy` is empty if there is nothing to do."""

    engine: str
    version: str
    frequencies: str
    attention_factor: str
    serve: str
    evidence: str
    remedy: str


def served(results: Results) -> list[Served]:
    """The records' results, by engine and method."""
    rows = [_served(results, record) for record in results.records("served") if "engine" in record]
    order = [entry.engine for entry in sources()]
    known = {name: place for place, name in enumerate(order)}
    place = {row.engine: known.get(row.engine, len(known)) for row in rows}
    return sorted(rows, key=lambda row: (place[row.engine], row.engine, row.weights, row.setting.order))


def _served(results: Results, record: dict) -> Served:
    scores, setting = record["scores"], Setting.of(record)
    weights = record["engine"].get("gguf") or record["answer"]["served"]
    apart, scaling = scores["apart_from"], setting.scaling(results.model.geometry)
    return Served(
        engine=record["engine"]["name"],
        version=record["engine"]["version"],
        weights=weights,
        setting=setting,
        losses={name: Score.of(loss) for name, loss in scores["losses"].items()},
        mean=apart["transformers"]["mean"],
        largest=apart["transformers"]["largest"],
        verdict=_verdict(apart, record["answer"]["served"] in _EXACT_WEIGHTS),
        tempered=scaling is not None and scaling.attention_factor != 1,
        length=record["tokens"],
        scored=record["scored"],
        trained="training" in record,
    )


def _verdict(apart: dict[str, dict], exact: bool) -> str:
    """The verdict, by the nearer of the two models. Positions count, because means may agree where no position does."""
    nearer = min(("transformers", "unextended"), key=lambda name: apart[name]["mean"])
    near = apart[nearer]["mean"] <= EXACT if exact else abs(apart[nearer]["of_means"]) <= QUANTISED
    return {"transformers": RIGHT, "unextended": DROPPED}[nearer] if near else WRONG


def sources() -> list[Engine]:
    """What the engines' sources say (with the file), and for measured engines, how to serve with them."""
    with open(SOURCES, encoding="utf-8", newline="") as file:
        return [
            Engine(
                row["engine"], row["version"], row["frequencies"], row["attention_factor"], row["serve"],
                f"from source, {Path(row['file']).name}: {row['said']}" if row["file"] else "", row["remedy"],
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


def matrix(rows: Iterable[Served]) -> list[Engine]:
    """Every engine; if there are records, they decide.

    Frequencies are right if methods without an attention factor are served right. The attention factor is right if
    methods with one are. GGUF files that were given by hand are not part of the matrix.
    """
    by_engine: dict[str, list[Served]] = {}
    for row in rows:
        by_engine.setdefault(row.engine, []).append(row)
    lines = []
    for line in sources():
        measured = [row for row in by_engine.get(line.engine, []) if not row.weights.endswith(".gguf")]
        if measured and line.frequencies != REFERENCE:
            line = replace(
                line,
                version=", ".join(dict.fromkeys(row.version for row in measured)),
                frequencies=_worst(row for row in measured if not row.tempered),
                attention_factor=_worst(row for row in measured if row.tempered),
                evidence=f"measured: {', '.join(dict.fromkeys(row.weights for row in measured))}",
            )
        elif not line.frequencies:
            line = replace(line, frequencies=UNKNOWN, attention_factor=UNKNOWN)
        lines.append(line)
    return lines


def _worst(rows: Iterable[Served]) -> str:
    verdicts = {row.verdict for row in rows}
    return next((verdict for verdict in (WRONG, DROPPED, RIGHT) if verdict in verdicts), UNKNOWN)


def families() -> dict[str, list[str]]:
    """The model types of transformers by what came out when one of each was extended; the most first."""
    by_outcome: dict[str, list[str]] = {}
    with open(FAMILIES, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            outcome = f"right; {row['note']}" if row["note"] else row["outcome"].partition(":")[0]
            about_it = re.sub(r"\b\w+For\w+\b|\ba '[\w-]+' model\b", "the model", outcome)
            by_outcome.setdefault(about_it, []).append(row["type"])
    return dict(sorted(by_outcome.items(), key=lambda each: -len(each[1])))


def servers() -> list[dict[str, str]]:
    """How many answers of a server were those of this process, by method and benchmark."""
    with open(SERVERS, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
