"""Passkey retrieval: a five-digit key in filler text, by prompt length and depth (the paper's
Figure 4 and appendix B.3, after Mohtashami and Jaggi).

    python -m experiments.passkey --model NAME --lengths 2048 4096 8192

Unless the model's suite says otherwise, the lengths reach a quarter beyond the extended context, as
the paper's 20k do for 16k.
"""

import functools
import itertools
import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from core.errors import DoesNotFit, InputError
from eval import Request
from eval.intervals import accuracy_interval
from experiments.kit import command_line
from experiments.kit.command_line import count, list_option, option
from experiments.kit.experiment import Prepared
from experiments.kit.generation import Generation

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


def sample_of(encode: Callable[[str], Sequence[int]], length: int, depth: float, seed: int) -> dict:
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


class Passkey(Generation):
    name = "passkey"
    unit = "keys that are found, and the 95 % interval of their share"

    @staticmethod
    def add_options(parser) -> None:
        lengths = "prompt lengths, the answer included (default: five up to 1.25 L')"
        list_option(parser, "--lengths", count, "TOKENS", lengths)
        option(parser, "--depths", count, "N", "number of depths of the key, evenly spaced", 5)
        option(parser, "--keys", count, "N", "prompts per length and depth", 3)
        Passkey.add_prompt_options(parser, "lengths")

    def prepare(self) -> Prepared:
        given = self.arguments
        quarter = self.model.context_length * self.factor / 4
        lengths = given.lengths or [round(quarter * number) for number in range(1, 6)]
        depths = [i / max(given.depths - 1, 1) for i in range(given.depths)]
        encode = functools.partial(self.encoded, begun=BEGUN)

        def of_length(length: int) -> dict[str, dict]:
            grid = itertools.product(depths, range(given.keys))
            samples = [sample_of(encode, length, depth, seed) for depth, seed in grid]
            return {sample["key"]: sample for sample in samples}

        fitting, samples = self.that_fit("--lengths", lengths, of_length)
        settings = {"lengths": fitting, "depths": depths, "keys": given.keys}
        return self.prompts(samples, settings)

    def request(self, key: str, sample: dict, context_length: int) -> Request:
        return Request(key, self.encoded(sample["prompt"], BEGUN), MAX_NEW_TOKENS)

    def score(self, key: str, sample: dict, prediction: str) -> dict:
        return {"score": score(prediction, sample["answer"]), "tokens": sample["tokens"]}

    def summary(self, values: dict[str, dict]) -> dict:
        """Accuracy by length, and by length and depth, with intervals; prompt lengths in tokens.

        The prompts of one length and depth differ in the key's digits alone, and are mostly all
        answered or none. So the interval of a length is over its depths.
        """
        cells = defaultdict(list)
        longest = defaultdict(int)
        for key, value in values.items():
            length, depth, _ = key.split("/")
            cells[int(length), float(depth)].append(value["score"])
            longest[int(length)] = max(longest[int(length)], value["tokens"])
        by_depth = [
            {"length": length, "depth": depth} | accuracy_interval(scores)
            for (length, depth), scores in cells.items()
        ]
        by_length = []
        for length, prompt in longest.items():
            places = [cell for cell in by_depth if cell["length"] == length]
            asked = sum(place["n"] for place in places)
            share = accuracy_interval([place["mean"] for place in places]) | {"n": asked}
            by_length.append({"length": length, "tokens": prompt} | share)
        return {"by_length": by_length, "by_depth": by_depth}

    def rows(self, scores: dict) -> list[tuple[str, ...]]:
        """The keys that were found at each length, as the paper's Figure 4 has them."""
        return [
            (
                f"length {row['length']}",
                f"{round(row['mean'] * row['n'])} of {row['n']}",
                f"[{100 * row['low']:.0f}, {100 * row['high']:.0f}] %",
            )
            for row in scores["by_length"]
        ]


main = Passkey.main

if __name__ == "__main__":
    command_line.run(main)
