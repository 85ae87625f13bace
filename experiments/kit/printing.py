"""The scores of a record, as a script prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_PLACES = ("length", "depth", "start", "end")  # what a score in a list is of


def rows(scores: object, *label: str) -> Iterator[tuple[str, str, str, str]]:
    """The scores of a record as rows: what each is of, its mean, its interval and its samples.

    Args:
        label: what all of them are of.
    """
    if isinstance(scores, list):
        for each in scores:
            yield from rows(each, *label)
    if not isinstance(scores, dict):
        return
    label += tuple(f"{name} {scores[name]}" for name in _PLACES if name in scores)
    if {"mean", "low", "high"} <= scores.keys():
        width = scores["high"] - scores["low"]  # of one sample it is none
        interval = f"[{scores['low']:.4g}, {scores['high']:.4g}]" if width else ""
        yield " ".join(label), f"{scores['mean']:.4g}", interval, f"n = {scores.get('n', '?')}"
    else:
        for name, inner in scores.items():
            yield from rows(inner, *label, name)


def aligned(table: Iterable[tuple[str, ...]]) -> list[str]:
    """Rows as lines whose columns stand below each other."""
    lines = [*table]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
