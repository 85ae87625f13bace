"""What each experiment's records measure: one function per experiment, from a record to scores by metric."""

from __future__ import annotations

import numpy as np

from analysis.beyond import loss_by_position
from analysis.scores import Score, Scores
from analysis.settings import tokens
from eval.intervals import accuracy_interval, mean_interval

# Generated samples in LongBench-E's form have buckets that divide at L and 2L tokens.
_MINIATURE = {"0-4k": "0-L", "4-8k": "L-2L", "8k+": "2L+", "Avg.": "Avg.", "Avg.>4k": "Avg.>L"}
OPEN_LLM = {
    "truthfulqa": "TruthfulQA",
    "hellaswag": "HellaSwag",
    "mmlu": "MMLU",
    "arc_challenge": "ARC-c",
    "average": "Avg.",
}


def longbench_e(record: dict) -> Scores:
    """The buckets, and the averages whose buckets were all measured."""
    found = record["scores"]["buckets"] | record["scores"]["averages"]
    names = _MINIATURE if "benchmark" in record else {name: name for name in found}
    return {names.get(name, name): Score.of(score) for name, score in found.items()}


def open_llm(record: dict) -> Scores:
    """Each benchmark, and their mean if all four were measured."""
    return {OPEN_LLM.get(name, name): Score.of(score) for name, score in record["scores"].items()}


def ruler(record: dict) -> Scores:
    """Every evaluation length, and their mean if there are several."""
    found = {tokens(int(length)): Score.of(score) for length, score in record["scores"]["lengths"].items()}
    return found if len(found) == 1 else found | {"Avg.": Score.of(record["scores"]["average"])}


def perplexity(record: dict) -> Scores:
    """The token-weighted average at every evaluation length."""
    return {tokens(row["length"]): Score.of(row["token"]) for row in record["scores"]}


def passkey(record: dict) -> Scores:
    """The per cent of passkeys found, by length."""
    return {tokens(row["length"]): Score.of(row, 100) for row in record["scores"]["by_length"]}


def passkeys_of_all_lengths(record: dict) -> Scores:
    """The per cent of passkeys found, over all lengths together."""
    rows = record["scores"]["by_length"]
    found, asked = round(sum(row["mean"] * row["n"] for row in rows)), sum(row["n"] for row in rows)
    return {"all": Score.of(accuracy_interval(np.arange(asked) < found), 100)}


def beyond(record: dict) -> Scores:
    """The mean loss over all positions beyond L, from a record of experiments.beyond.loss_by_position."""
    first = record["ranges"][1]["start"] // record["block"]
    return {"beyond": Score.of(mean_interval(loss_by_position.blocks(record)[0, :, first:].ravel()))}


def generic(record: dict) -> Scores:
    """Every score at the first level of a record, for an experiment that has no function here."""
    scores = record.get("scores")
    entries = scores.items() if isinstance(scores, dict) else ()
    return {name: Score.of(value) for name, value in entries if isinstance(value, dict) and "low" in value}
