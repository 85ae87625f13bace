"""Passkey retrieval: a five-digit key in filler text, by prompt length and depth (the paper's
Figure 4).

    python -m experiments.passkey --model NAME --lengths 2048 4096 8192

Unless the model's suite says otherwise, the lengths reach a quarter beyond the extended context, as
the paper's 20k do for 16k.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterator

from eval import Request, passkey
from eval.intervals import accuracy_interval
from experiments.kit import command_line
from experiments.kit.command_line import count, list_option, option
from experiments.kit.experiment import Prepared
from experiments.kit.generation import Generation


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
        quarter = self.context_length * self.factor / 4
        lengths = given.lengths or [round(quarter * number) for number in range(1, 6)]
        depths = [i / max(given.depths - 1, 1) for i in range(given.depths)]
        encode = functools.partial(self.encoded, begun=passkey.BEGUN)

        def of_length(length: int) -> dict[str, dict]:
            grid = itertools.product(depths, range(given.keys))
            samples = [passkey.sample(encode, length, depth, seed) for depth, seed in grid]
            return {sample["key"]: sample for sample in samples}

        fitting, samples = self.that_fit("--lengths", lengths, of_length)
        settings = {"lengths": fitting, "depths": depths, "keys": given.keys}
        return self.prompts(samples, settings)

    def request(self, key: str, sample: dict, context_length: int) -> Request:
        return Request(key, self.encoded(sample["prompt"], passkey.BEGUN), passkey.MAX_NEW_TOKENS)

    def score(self, key: str, sample: dict, prediction: str) -> dict:
        return {"score": passkey.score(prediction, sample["answer"]), "tokens": sample["tokens"]}

    def summary(self, values: dict[str, dict]) -> dict:
        """Accuracy by length, and by length and depth, with intervals; prompt lengths in tokens."""
        cells = defaultdict(list)
        lengths = defaultdict(list)
        for key, value in values.items():
            length, depth, _ = key.split("/")
            cells[int(length), float(depth)].append(value["score"])
            lengths[int(length)].append(value)
        by_length = [
            {"length": length, "tokens": max(value["tokens"] for value in of_length)}
            | accuracy_interval([value["score"] for value in of_length])
            for length, of_length in lengths.items()
        ]
        by_depth = [
            {"length": length, "depth": depth} | accuracy_interval(scores)
            for (length, depth), scores in cells.items()
        ]
        return {"by_length": by_length, "by_depth": by_depth}

    def rows(self, scores: dict) -> Iterator[tuple[str, ...]]:
        """The keys that were found at each length, as the paper's Figure 4 has them."""
        for row in scores["by_length"]:
            found = f"{round(row['mean'] * row['n'])} of {row['n']}"
            interval = f"[{100 * row['low']:.0f}, {100 * row['high']:.0f}] %"
            yield f"length {row['length']}", found, interval


main = Passkey.main

if __name__ == "__main__":
    command_line.run(main)
