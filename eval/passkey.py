"""Passkey retrieval: a five-digit key inside repeated filler (the paper's appendix B.3, after
Mohtashami and Jaggi)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from core.errors import DoesNotFit, InputError

# The paper's prompt (Figure 9), each line of it ending in a newline.
INTRODUCTION = (
    "There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. "
    "I will quiz you about the important information there.\n"
)
_FILLER = (
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again. "
)
KEY = "\nThe pass key is {key}. Remember it. {key} is the pass key.\n"
BEGUN = " The pass key is"  # the answer
QUESTION = f"\nWhat is the pass key?{BEGUN}"
MAX_NEW_TOKENS = 12


def sample(encode: Callable[[str], Sequence[int]], length: int, depth: float, seed: int) -> dict:
    """The longest prompt of at most `length` tokens, answer included, with the key at `depth`.

    The digits depend on (length, depth, seed) alone, so a grid of samples can grow without changing
    its old ones.

    Args:
        encode: from a prompt to the token ids that the model reads, such as a tokenizer's own
            `encode`.
        length, depth, seed: of the grid; the depth is a share of the fillers, from 0 (first) to 1
            (last).

    Returns:
        "key" (names the sample, "length/depth/seed"), "prompt" (the text), "tokens" (its exact
        length in the tokens that the model reads, special ones such as LLaMA2's <s> included),
        "depth", and "answer" (the five digits).

    Raises:
        DoesNotFit: the length has no room for one filler.
        InputError: more fillers make no more tokens.
    """
    answer = str(random.Random(f"{length} {depth} {seed}").randint(10000, 99999))

    def prompt(fillers: int) -> str:
        before = round(depth * fillers)
        return (
            INTRODUCTION
            + _FILLER * before
            + KEY.format(key=answer)
            + _FILLER * (fillers - before)
            + QUESTION
        )

    def tokens(fillers: int) -> int:
        return len(encode(prompt(fillers)))

    room = length - MAX_NEW_TOKENS
    shortest = tokens(0)
    # nearly; the exact number is near
    fillers = max((room - shortest) // max(tokens(1) - shortest, 1), 0)
    while fillers and tokens(fillers) > room:
        fillers -= 1
    while (longer := tokens(fillers + 1)) <= room:
        if longer <= tokens(fillers):
            raise InputError(
                "a longer prompt has no more tokens with this tokenizer; give another one."
            )
        fillers += 1
    if fillers == 0:
        raise DoesNotFit(
            f"a passkey prompt does not fit in {length} tokens; the shortest takes "
            f"{tokens(1) + MAX_NEW_TOKENS}."
        )
    return {
        "key": f"{length}/{depth:g}/{seed}",
        "prompt": prompt(fillers),
        "tokens": tokens(fillers),
        "depth": depth,
        "answer": answer,
    }


def score(prediction: str, answer: str) -> float:
    """1 if the first run of digits in the prediction is the key, else 0."""
    return float(re.findall(r"\d+", prediction)[:1] == [answer])
