"""Passkeys found of those asked: the records of experiments.passkey."""

from __future__ import annotations

from dataclasses import dataclass, replace

from analysis import metrics
from analysis.rows import Row, tokens
from analysis.scores import Score

ALL = "all"


@dataclass(frozen=True)
class Found:
    """Keys of all seeds together.

    Attributes:
        found, asked: how many.
        share: in per cent, with its interval for prompts and seeds.
    """

    found: int
    asked: int
    share: Score


def by_length(row: Row) -> dict[str, Found]:
    """By length in tokens, and of all lengths together."""
    lines = [line for run in row.runs for line in run["scores"]["by_length"]]
    shares = {**row.scores(metrics.passkey), **row.scores(metrics.passkeys_of_all_lengths)}
    found = {}
    for name, share in shares.items():
        own = [line for line in lines if name in (ALL, tokens(line["length"]))]
        keys = round(sum(line["mean"] * line["n"] for line in own))
        # Over seeds, an interval may pass what there is to find.
        found[name] = Found(keys, sum(line["n"] for line in own), replace(share, high=min(share.high, 100.0)))
    return found
