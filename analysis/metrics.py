"""What each experiment's records measure: one function per experiment, from a record to scores by
metric."""

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from analysis.comparison import Row
from analysis.results import Record
from analysis.scores import Score, Scores, book_of, over_texts
from core.setting import Setting, tokens
from eval import longbench
from eval.intervals import LEAST_FOR_MEDIAN, accuracy_interval

# Generated samples in LongBench-E's form have buckets that divide at L and 2L tokens.
_MINIATURE = {"0-4k": "0-L", "4-8k": "L-2L", "8k+": "2L+", "Avg.>4k": "Avg.>L"}
ALL = "all"  # lengths together
OPEN_LLM = {
    "truthfulqa": "TruthfulQA",
    "hellaswag": "HellaSwag",
    "mmlu": "MMLU",
    "arc_challenge": "ARC-c",
    "average": "Avg.",
}


def longbench_e(record: Record) -> Scores:
    """The buckets, and the averages whose buckets were all measured."""
    scores = record.scores["buckets"] | record.scores["averages"]
    names = _MINIATURE if record.benchmark else {}
    tasks = record.scores["tasks"].values()
    by_name = {}
    for name, score in scores.items():
        buckets = longbench.AVERAGES.get(name, (name,))
        groups = [task[bucket] for task in tasks for bucket in buckets if bucket in task]
        by_name[names.get(name, name)] = _mean_of(score, groups)
    return by_name


def open_llm(record: Record) -> Scores:
    """Each benchmark, and their mean if all four were measured."""
    scores = record.scores["tasks"]
    return {
        OPEN_LLM.get(name, name): _mean_of(score, scores.values() if name == "average" else ())
        for name, score in scores.items()
    }


def _mean_of(score: Mapping, groups: Iterable[Mapping]) -> Score:
    """The mean of groups; without an interval if one has a single sample, which resampling cannot
    change."""
    resampled = all(group.get("n") != 1 for group in groups)
    mean = Score.of(score) if resampled else Score(score["mean"], n=score.get("n"))
    return mean.within_100()


def ruler(record: Record) -> Scores:
    """Every evaluation length, and their mean if there are several."""
    scores = {
        tokens(int(length)): Score.of(score).within_100()
        for length, score in record.scores["lengths"].items()
    }
    if len(scores) != 1:
        scores["Avg."] = Score.of(record.scores["average"]).within_100()
    return scores


def perplexity(record: Record) -> Scores:
    """exp of :func:`log_perplexity`."""
    return {length: loss.exponential() for length, loss in log_perplexity(record).items()}


def log_perplexity(record: Record) -> Scores:
    """At every evaluation length, the mean over books of a book's mean loss in nats per token."""
    losses = {row["length"]: {} for row in record.scores["by_length"]}
    for key, window in record.scores["by_window"].items():
        title, length, _ = key.rsplit("/", 2)
        if int(length) in losses:
            losses[int(length)].setdefault(book_of(title), []).append(window)
    return {
        tokens(length): over_texts([[_loss(texts[title]) for title in sorted(texts)]])
        for length, texts in losses.items()
    }


def _loss(windows: list[tuple[float, int]]) -> float:
    """A text's mean loss, from the summed loss and the number of tokens of its windows."""
    sums, counts = np.array(windows, dtype=np.float64).T
    return float(sums.sum() / counts.sum())


def passkey(record: Record) -> Scores:
    """The per cent of passkeys found, by length."""
    lines = record.scores["by_length"]
    return {tokens(line["length"]): Score.of(line, 100).within_100() for line in lines}


def passkeys_within(record: Record, longest: float = math.inf) -> Score:
    """The per cent of passkeys found in texts of at most `longest` tokens, with an interval over
    places, a length and a depth each: those of one place are mostly all found or none."""
    places = [place for place in record.scores["by_depth"] if place["length"] <= longest]
    share = accuracy_interval(np.array([place["mean"] for place in places]))
    _, asked = _keys(places)
    return Score.of(share | {"n": asked}, 100).within_100()


def _keys(lines: list[dict]) -> tuple[int, int]:
    """(found, asked)."""
    return round(sum(line["mean"] * line["n"] for line in lines)), sum(line["n"] for line in lines)


def passkeys_by_length(row: Row) -> dict[str, tuple[int, int, Score]]:
    """The passkeys of all seeds together, by length in tokens and over all lengths.

    Returns:
        the numbers of keys found and asked for, and the per cent found, with its interval over
        prompts and seeds.
    """
    lines = [line for run in row.runs for line in run.scores["by_length"]]
    counts = {}
    shares = row.scores(lambda run: {**passkey(run), ALL: passkeys_within(run)})
    for name, share in shares.items():
        of_length = [line for line in lines if name in (ALL, tokens(line["length"]))]
        counts[name] = (*_keys(of_length), share)
    return counts


def times(record: Record) -> Iterator[tuple[Setting, dict, Score]]:
    """Of each timing: its setting, its row of the record, and its time as a multiple of PI's, which
    has no interval where the rounds are too few."""
    for row in record.scores["rows"]:
        setting = Setting.of(row | {"factor": record.run["factor"]})
        enough = row["rounds"] >= LEAST_FOR_MEDIAN  # of fewer the record has the range
        low, high = (row["low"], row["high"]) if enough else (None, None)
        yield setting, row, Score(row["relative_to_pi"], low, high, row["rounds"])


def generic(record: Record) -> Scores:
    """Every score at the first level of a record, for an experiment that has no function here; what
    else it holds there is none."""
    return {
        name: Score.of(value)
        for name, value in record.scores.items()
        if isinstance(value, dict) and {"mean", "low", "high"} <= value.keys()
    }
