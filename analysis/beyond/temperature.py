"""Settings with a given attention factor beside the same settings without: how much the temperature contributes."""

from __future__ import annotations

from dataclasses import replace

from analysis import metrics
from analysis.comparison import LeftOut, Row, compared
from analysis.results import Results
from analysis.scores import Scores
from analysis.settings import Setting, extended_length, tokens

OPTION = "attention_factor"
_MEASURED = {"perplexity": (metrics.perplexity, "perplexity"), "passkey": (metrics.passkey, "passkeys")}


def rows(results: Results, trained: bool) -> tuple[dict[float, dict[Setting, Scores]], list[LeftOut]]:
    """Perplexity and passkeys (in per cent) at L and L', by factor and setting, and the records left out."""
    measured: dict[str, dict[Setting, Row]] = {}
    left_out: list[LeftOut] = []
    for experiment in _MEASURED:
        comparison = compared(results, experiment, trained, lambda run: run["method"] is not None)
        measured[experiment] = {row.setting: row for row in comparison.rows}
        left_out += comparison.left_out
    every = {setting for rows_of in measured.values() for setting in rows_of}
    tempered = {setting for setting in every if setting.option(OPTION) is not None}
    plain = {replace(each, options=tuple(entry for entry in each.options if entry[0] != OPTION)) for each in tempered}
    shown = sorted(tempered | (plain & every), key=lambda setting: setting.order)
    by_factor: dict[float, dict[Setting, Scores]] = {}
    for setting in shown:
        by_factor.setdefault(setting.factor, {})[setting] = _scores(results, setting, measured)
    return by_factor, left_out


def _scores(results: Results, setting: Setting, measured: dict[str, dict[Setting, Row]]) -> Scores:
    by_name = {}
    ends = [tokens(extended_length(results, factor)) for factor in (1, setting.factor)]
    for experiment, (of, title) in _MEASURED.items():
        if setting in measured[experiment]:
            scores = measured[experiment][setting].scores(of)
            by_name |= {f"{title}, {end}": scores[end] for end in ends if end in scores}
    return {name: score.at_most(100.0) if name.startswith("passkeys") else score for name, score in by_name.items()}
