"""What each experiment's records measure: one function per experiment, from a record to scores by metric."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from analysis.comparison import Row
from analysis.scores import Score, Scores
from analysis.settings import tokens
from eval.intervals import accuracy_interval

# Generated samples in LongBench-E's form have buckets that divide at L and 2L tokens.
_MINIATURE = {"0-4k": "0-L", "4-8k": "L-2L", "8k+": "2L+", "Avg.": "Avg.", "Avg.>4k": "Avg.>L"}
ALL = "all"  # lengths together
OPEN_LLM = {
    "truthfulqa": "TruthfulQA",
    "hellaswag": "HellaSwag",
    "mmlu": "MMLU",
    "arc_challenge": "ARC-c",
    "average": "Avg.",
}


def longbench_e(record: dict) -> Scores:
    """The buckets, and the averages whose buckets were all measured."""
    scores = record["scores"]["buckets"] | record["scores"]["averages"]
    names = _MINIATURE if "benchmark" in record else {}
    return {names.get(name, name): Score.of(score) for name, score in scores.items()}


def open_llm(record: dict) -> Scores:
    """Each benchmark, and their mean if all four were measured."""
    return {OPEN_LLM.get(name, name): Score.of(score) for name, score in record["scores"].items()}


def ruler(record: dict) -> Scores:
    """Every evaluation length, and their mean if there are several."""
    by_length = {tokens(int(length)): Score.of(score) for length, score in record["scores"]["lengths"].items()}
    return by_length if len(by_length) == 1 else by_length | {"Avg.": Score.of(record["scores"]["average"])}


def perplexity(record: dict) -> Scores:
    """The token-weighted average at every evaluation length."""
    return {tokens(row["length"]): Score.of(row["token"]) for row in record["scores"]}


def passkey(record: dict) -> Scores:
    """The per cent of passkeys found, by length."""
    return {tokens(row["length"]): Score.of(row, 100) for row in record["scores"]["by_length"]}


def passkeys_of_all_lengths(record: dict) -> Scores:
    """The per cent of passkeys found, over all lengths together."""
    return {ALL: passkeys_within(record)}


def passkeys_within(record: dict, longest: float = math.inf) -> Score:
    """The per cent of passkeys found in texts of at most `longest` tokens."""
    found, asked = _keys([line for line in record["scores"]["by_length"] if line["length"] <= longest])
    return Score.of(accuracy_interval(np.arange(asked) < found), 100)


def _keys(lines: list[dict]) -> tuple[int, int]:
    """(found, asked)."""
    return round(sum(line["mean"] * line["n"] for line in lines)), sum(line["n"] for line in lines)


@dataclass(frozen=True)
class Passkeys:
    """The passkeys of one length, over all seeds together.

    Attributes:
        found, asked: the numbers of keys.
        share: the per cent found, with its interval over prompts and seeds.
    """

    found: int
    asked: int
    share: Score


def passkeys_by_length(row: Row) -> dict[str, Passkeys]:
    """The passkeys by length in tokens, and over all lengths together."""
    lines = [line for run in row.runs for line in run["scores"]["by_length"]]
    shares = {**row.scores(passkey), **row.scores(passkeys_of_all_lengths)}
    counts = {}
    for name, share in shares.items():
        of_length = [line for line in lines if name in (ALL, tokens(line["length"]))]
        # An interval over seeds may exceed 100 %.
        share = replace(share, high=min(share.high, 100.0))
        counts[name] = Passkeys(*_keys(of_length), share)
    return counts


def generic(record: dict) -> Scores:
    """Every score at the first level of a record, for an experiment that has no function here."""
    scores = record.get("scores")
    entries = scores.items() if isinstance(scores, dict) else ()
    return {name: Score.of(value) for name, value in entries if isinstance(value, dict) and "low" in value}
