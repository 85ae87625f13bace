"""Miniature benchmarks: generated tasks on public-domain text, with train and eval splits that
share nothing."""

import random
from collections.abc import Callable

from core.errors import InputError
from tools.tiny.miniature import longbench, open_llm, reading, retrieval
from tools.tiny.miniature.sample import Sample, Source

GENERATORS: dict[str, Callable[[random.Random, Source, int, int], Sample]] = {
    "recall": retrieval.recall,
    "passkey": retrieval.passkey,
    "tracking": retrieval.tracking,
    "counting": retrieval.counting,
    "answering": reading.answering,
    "classification": reading.classification,
    "copying": reading.copying,
    "repetition": reading.repetition,
    "completion": reading.completion,
    "longbench": longbench.any_task,
    "choice": open_llm.choice,
}


def make(kind: str, rng: random.Random, source: Source, length: int, turns: int = 1) -> Sample:
    """A sample of a kind, at most `length` tokens with all its questions and answers.

    Args:
        kind: a name in :data:`GENERATORS`.
        rng: the only source of randomness; the same state gives the same sample.
        source: split, tokenizer and passages.
        length: the most tokens that the sample may take.
        turns: the most questions to ask; fewer if they do not fit, but at least one.

    Raises:
        InputError: `length` is too short for the kind.
    """
    for _ in range(20):
        sample = GENERATORS[kind](rng, source, length, turns)
        if source.count(sample.text) <= length:
            return sample
    raise InputError(f"a sample of {kind!r} does not fit in {length} tokens; give it more.")
