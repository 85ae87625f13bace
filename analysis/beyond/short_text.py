"""What extending costs on texts that fit in L: paired differences from the unextended model."""

from __future__ import annotations

import functools

import numpy as np

from analysis.beyond import loss_by_position
from analysis.comparison import LeftOut, Row, compared
from analysis.metrics import OPEN_LLM
from analysis.results import Results
from analysis.row_differences import paired
from analysis.scores import Scores
from analysis.settings import Setting
from core import rope

PERPLEXITY = "Perplexity"


@functools.lru_cache(maxsize=64)  # a table and its page need the same
def differences(results: Results, factor: float, trained: bool) -> dict[Setting, Scores]:
    """Each setting's scores minus the unextended model's; equal selections of pairs appear once.

    Perplexity is in per cent, at the positions below L; the Open LLM benchmarks are in points. Only settings whose
    benchmark scores are recorded by document are listed. Of several seeds the benchmarks' mean is taken.
    """
    changes: dict[Setting, dict] = {}
    for experiment, change in (("loss_by_position", _perplexity), ("open_llm", _benchmarks)):
        untrained = compared(results, experiment, False, factor=factor)
        original = untrained.find(rope.ORIGINAL)
        if original is None:
            continue
        for row in compared(results, experiment, True, factor=factor).rows if trained else untrained.rows:
            same = all(row.first.get(key) == original.first.get(key) for key in ("data", "length", "shots"))
            if same and row.setting.method != rope.ORIGINAL and "same_selection_as" not in row.first:
                changes.setdefault(row.setting, {}).update(change(row, original))
    return {setting: scores for setting, scores in changes.items() if set(scores) - {PERPLEXITY}}


def left_out(results: Results, factor: float, trained: bool) -> list[LeftOut]:
    """The records that are not comparable with the rest."""
    records = []
    for experiment in ("loss_by_position", "open_llm"):
        records += compared(results, experiment, trained, factor=factor).left_out
    return records


def _perplexity(row: Row, original: Row) -> Scores:
    """The change of perplexity in per cent, by the loss below L."""
    change = loss_by_position.gap(row, original, beyond=False)
    return {PERPLEXITY: change.to(lambda nats: 100 * np.expm1(nats))}


def _benchmarks(row: Row, original: Row) -> Scores:
    """The change in points for each benchmark and, if all were measured, for their mean."""
    measured = original.first.get("by_document", {})
    names = [name for name in OPEN_LLM if name in measured or len(measured) == len(OPEN_LLM) - 1]
    changes = {OPEN_LLM[name]: paired(row, original, "open_llm", OPEN_LLM[name]) for name in names}
    return {name: change for name, change in changes.items() if change}
