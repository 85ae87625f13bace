"""The untrained n̂ ablation, by every evaluation at the longest length."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from analysis import metrics
from analysis.beyond import loss_by_position
from analysis.comparison import Metrics, ablation
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import extended_length, tokens


@dataclass(frozen=True)
class Column:
    """An evaluation of every n̂.

    Attributes:
        title: what it measures.
        digits: decimals to print.
        least: whether less is better.
        scores: the scores by n̂.
    """

    title: str
    digits: int
    least: bool
    scores: dict[int, Score]


def columns(results: Results) -> tuple[float | None, list[Column]]:
    """The factor at which the most n̂ were measured, and every evaluation at it; other factors are not shown."""
    wanted: list[tuple[str, str, Metrics, str | None, int, bool]] = [
        ("loss_by_position", "Loss", loss_by_position.beyond, "beyond", 3, True),
        ("perplexity", "Perplexity", metrics.perplexity, None, 2, True),
        ("passkey", "Passkeys", metrics.passkeys_of_all_lengths, "all", 0, False),
        ("ruler", "RULER", metrics.ruler, None, 1, False),
        ("open_llm", "Open LLM", metrics.open_llm, "Avg.", 1, False),
    ]
    by_experiment = {experiment: ablation(results, experiment, "n_hat", trained=False) for experiment, *_ in wanted}
    counts = Counter(row.setting.factor for rows in by_experiment.values() for row in rows.values())
    if not counts:
        return None, []
    factor = counts.most_common(1)[0][0]
    longest = tokens(extended_length(results, factor))
    shown = []
    for experiment, title, of, metric, digits, least in wanted:
        named = title if metric else f"{title}, {longest}"
        rows = by_experiment[experiment].items()
        scores = {value: row.scores(of).get(metric or longest) for value, row in rows if row.setting.factor == factor}
        shown.append(Column(named, digits, least, {value: score for value, score in scores.items() if score}))
    return factor, shown
