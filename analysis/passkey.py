"""How many passkeys were found: the records of experiments.passkey."""

from __future__ import annotations

from dataclasses import dataclass, replace

from analysis import metrics
from analysis.comparison import Row
from analysis.scores import Score
from analysis.settings import tokens

ALL = "all"


@dataclass(frozen=True)
class Found:
    """The passkeys found, over all seeds together.

    Attributes:
        found, asked: the numbers of keys.
        share: the per cent found, with its interval over prompts and seeds.
    """

    found: int
    asked: int
    share: Score


def by_length(row: Row) -> dict[str, Found]:
    """The keys found by length in tokens, and over all lengths together."""
    lines = [line for run in row.runs for line in run["scores"]["by_length"]]
    shares = {**row.scores(metrics.passkey), **row.scores(metrics.passkeys_of_all_lengths)}
    found = {}
    for name, share in shares.items():
        own = [line for line in lines if name in (ALL, tokens(line["length"]))]
        keys = round(sum(line["mean"] * line["n"] for line in own))
        # An interval over seeds may exceed 100 %.
        found[name] = Found(keys, sum(line["n"] for line in own), replace(share, high=min(share.high, 100.0)))
    return found
