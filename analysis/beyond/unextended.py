"""The scores of the model as it is, without extension, on every benchmark that has a record of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analysis import metrics
from analysis.metrics import OPEN_LLM
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import tokens
from core import rope


@dataclass(frozen=True)
class Line:
    """One benchmark, or one length of it.

    Attributes:
        name: the benchmark's name.
        amount: how much was asked or scored.
        score: the score in the benchmark's unit.
        digits: decimals to print.
    """

    name: str
    amount: str
    score: Score
    digits: int = 1


def lines(results: Results) -> list[Line]:
    """Each benchmark once: for a checkpoint as it is, else for the unextended model at the smallest factor."""
    by_name: dict[str, Line] = {}
    others = [name for name in results.experiments() if name not in _OF and not hasattr(metrics, name)]
    for experiment in [*_OF, *others]:
        of = _OF.get(experiment, functools.partial(_generic, experiment))
        plain = [run for run in results.records(experiment) if run.get("method", "several") in (None, rope.ORIGINAL)]
        for run in sorted(plain, key=lambda run: (run["method"] is not None, run["factor"])):
            if "training" not in run:
                for line in of(run):
                    by_name.setdefault(line.name, line)
    return list(by_name.values())


def _open_llm(run: dict) -> Iterator[Line]:
    start = f"{run['benchmark']}, " if "benchmark" in run else ""
    for name, score in run["scores"].items():
        if name != "average":
            yield Line(start + OPEN_LLM.get(name, name), f"{score['n']} items", Score.of(score))


def _longbench_e(run: dict) -> Iterator[Line]:
    start = run.get("benchmark", "LongBench-E") + ", "
    tasks = len(run["scores"]["tasks"])
    for name, score in metrics.longbench_e(run).items():
        if not name.startswith("Avg."):
            yield Line(start + name, f"{score.n} items of {tasks} task{'s' * (tasks != 1)}", score)


def _ruler(run: dict) -> Iterator[Line]:
    for length, score in run["scores"]["lengths"].items():
        tasks = len(run["tasks"])
        amount = f"{tasks * run['samples']} prompts of {tasks} task{'s' * (tasks != 1)}"
        yield Line(f"RULER, {tokens(int(length))}", amount, Score.of(score))


def _perplexity(run: dict) -> Iterator[Line]:
    by_convention = {name: metrics.perplexity(run, name) for name in ("token", "window")}
    for row in run["scores"]:
        length = tokens(row["length"])
        for convention, name in (("token", "Perplexity"), ("window", "Perplexity by window")):
            score = by_convention[convention][length]
            amount = f"{len(score.texts)} text{'s' * (len(score.texts) > 1)}, {row['tokens']:,} tokens"
            yield Line(f"{name}, {length}", amount, score, 2)


def _passkey(run: dict) -> Iterator[Line]:
    for row in run["scores"]["by_length"]:
        yield Line(f"Passkeys, {tokens(row['length'])}", f"{row['n']} prompts", Score.of(row, 100), 0)


def _generic(experiment: str, run: dict) -> Iterator[Line]:
    for name, score in metrics.generic(run).items():
        yield Line(f"{experiment}, {name}", "" if score.n is None else f"{score.n} samples", score)


_OF: dict[str, Callable[[dict], Iterator[Line]]] = {
    "open_llm": _open_llm,
    "longbench_e": _longbench_e,
    "ruler": _ruler,
    "perplexity": _perplexity,
    "passkey": _passkey,
}
