"""Times relative to PI's: the records of experiments.time_cost."""

from __future__ import annotations

from analysis.scores import Score, Scores
from analysis.settings import Setting


def rows(record: dict) -> list[tuple[str, Scores]]:
    """Each setting's name and, by phase, the median of its times relative to PI's."""
    found: dict[str, dict[str, Score]] = {}
    for row in record["scores"]:
        setting = Setting.of(row | {"factor": record["factor"]})
        name = setting.name + (", again" if row["again"] else "")
        score = Score(row["relative_to_pi"], row["low"], row["high"], row["rounds"])
        found.setdefault(name, {})[row["phase"]] = score
    return list(found.items())
