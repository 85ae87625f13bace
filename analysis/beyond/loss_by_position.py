"""Loss by position at the beginnings of books: the records of experiments.beyond.loss_by_position."""

from __future__ import annotations

import numpy as np

from analysis.comparison import Comparison, Row, compared, factors
from analysis.results import Results
from analysis.scores import Score, Scores, stacked
from analysis.settings import span
from eval.intervals import mean_interval


def measured_factors(results: Results) -> list[float]:
    """The scaling factors of the records."""
    return factors(results, "loss_by_position")


def untrained(results: Results, factor: float) -> Comparison:
    """The untrained settings on one set of books, each selection of pairs once.

    If several sets of books were scored at this factor, it is the set with the most settings.
    """
    return compared(results, "loss_by_position", False, twins=False, factor=factor)


def fine_tuned(results: Results, like: Comparison) -> Comparison:
    """The fine-tuned models on the same text and at the same factor as another comparison."""
    if not like:
        return Comparison(())

    def same_text(run: dict) -> bool:
        return all(run[name] == like.first[name] for name in ("data", "length"))

    return compared(results, "loss_by_position", True, same_text, twins=False, factor=like.first["factor"])


def parts(results: Results, factor: float) -> list[Comparison]:
    """The comparisons at a factor that have rows: without training, then fine-tuned."""
    without = untrained(results, factor)
    any_text = compared(results, "loss_by_position", True, twins=False, factor=factor)
    return [rows for rows in (without, fine_tuned(results, without) if without else any_text) if rows]


def ranges(run: dict) -> Scores:
    """The mean loss within L and in the two halves of the range beyond it."""
    return {span(each["start"], each["end"]): Score.of(each) for each in run["ranges"]}


def buckets(run: dict) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The curve: positions [buckets] in tokens, and mean, low and high [buckets] in nats per token."""
    position = np.array([(bucket["start"] + bucket["end"]) / 2 for bucket in run["buckets"]])
    return position, {name: np.array([bucket[name] for bucket in run["buckets"]]) for name in ("mean", "low", "high")}


def beyond(record: dict) -> Scores:
    """The mean loss over all positions beyond L."""
    return {"beyond": _mean(record, blocks(record)[0], beyond=True)}


def blocks(*runs: dict) -> np.ndarray:
    """The losses of records on the same texts, [records, texts, blocks], with the texts in the first record's order."""
    return stacked([[run["blocks"][title] for title in runs[0]["blocks"]] for run in runs])


def level(row: Row, beyond: bool = True) -> Score:
    """The loss beyond L or within it, as each block's mean over seeds, with a bootstrap interval over blocks."""
    return _mean(row.first, blocks(*row.runs).mean(axis=0), beyond)


def gap(row: Row, reference: Row, beyond: bool = True) -> Score:
    """:func:`level` minus the reference's, paired by block."""
    losses, others = (blocks(row.first, *each.runs)[1:].mean(axis=0) for each in (row, reference))
    return _mean(row.first, losses - others, beyond)


def _mean(run: dict, losses: np.ndarray, beyond: bool) -> Score:
    """The mean over losses [texts, blocks] beyond L or within it."""
    edge = run["ranges"][1]["start"] // run["block"]
    return Score.of(mean_interval((losses[:, edge:] if beyond else losses[:, :edge]).ravel()))
