"""RULER: the mean over its tasks at each evaluation length (tables/ruler.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common
from tables.benchmarks import Scores, measured, published, stacked, tokens

CAPTION = (
    r"RULER, mean score (\%) of its tasks by evaluation length in tokens. Measured rows: with 95\,\% intervals for samples "
    r"(Wilson's over all tasks, wide rather than narrow) and, where there are several, training seeds (Student's). "
    r"Best in bold."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.ruler."""
    return stacked("ruler", [*published("ruler"), *measured(results, scale, "ruler", scores, extent)], CAPTION)


def extent(record: dict) -> str:
    """How many tasks, where they are not all 13."""
    count = len(record["tasks"])
    return "" if count == 13 else f", {count} of 13 tasks"


def scores(record: dict) -> Scores:
    """Every evaluation length, and their mean where there are several."""
    found = {tokens(int(length)): score for length, score in record["scores"]["lengths"].items()}
    return found if len(found) == 1 else found | {"Avg.": record["scores"]["average"]}


if __name__ == "__main__":
    common.run("ruler", __doc__, "tiny", build)
