"""Table 9: time of a training step and of a forward pass.

Relative to PI.
"""

from analysis.results import Record, Results
from analysis.scores import Score, Scores
from analysis.settings import Setting
from core import rope
from tables.kit.benchmark_table import published_blocks
from tables.kit.table import Table, score_block

_REFERENCE = rope.METHODS[rope.TIME_REFERENCE].title
CAPTION = (
    f"Time of a training step and of a forward pass, relative to {_REFERENCE}. Measured rows are "
    f"the median over "
    "rounds, with a 95 % interval in brackets; every round times every method once, in an order "
    "of its own. "
    f"“{_REFERENCE}, again” is {_REFERENCE} timed a second time in every round, so it shows the "
    f"error of the clock."
)


def build(results: Results) -> Table:
    """From the records of experiments.time_cost."""
    blocks = []
    for record in results.require("time_cost"):
        rounds = record.scores["rows"][0]["rounds"]
        factor = record.run["factor"]
        title = (
            f"{results.model.title}, measured at {record.run['length']} tokens, {rounds} rounds, s "
            f"= {factor:g}"
        )
        blocks.append(score_block(title, _rows(record), digits=3, best=None))
    return Table("time_cost", CAPTION, (*published_blocks("time_cost"), *blocks), "Table 9")


def _rows(record: Record) -> list[tuple[str, Scores]]:
    """Each setting's name and, by phase, the median of its times relative to PI's."""
    by_setting: dict[str, dict[str, Score]] = {}
    for row in record.scores["rows"]:
        name = Setting.of(row | {"factor": record.run["factor"]}).name + (
            ", again" if row["again"] else ""
        )
        score = Score(row["relative_to_pi"], row["low"], row["high"], row["rounds"])
        by_setting.setdefault(name, {})[row["phase"]] = score
    return list(by_setting.items())
