"""Loss at the tokens that a long context helps to predict (LongPPL's key tokens), within L and beyond it.

    python -m experiments.beyond.long_perplexity --model tiny --factor 2
    python -m experiments.beyond.long_perplexity --model CHECKPOINT --texts BOOK.txt

The model that tells which tokens these are is the base model without extension, also for its fine-tunes. It reads no
more than the L tokens that it was trained for, and for comparison an eighth of them. So all methods are compared on the
same tokens.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from core.errors import InputError
from eval.beyond.long_perplexity import key_tokens
from eval.position_loss import position_losses
from experiments.beyond.loss_by_position import LossByPosition
from experiments.kit import command_line
from experiments.kit.base_model import BaseModel

SHORT, STEP = 8, 4  # the short context is an eighth of L, and its windows move by a quarter of that


class LongPerplexity(LossByPosition):
    __doc__ = __doc__
    name = "long_perplexity"
    unit = "mean loss in nats per token, within L and beyond it"

    @functools.cached_property
    def evaluator(self) -> BaseModel:
        """The base model, without extension."""
        if self.base.extension and not self.base.origin:
            raise InputError(f"{self.base.name} was extended before; give its base model, and the method by --method.")
        return BaseModel(self.base.folder if self.base.origin else self.base.name)

    def settings(self) -> dict:
        identity = self.evaluator.provenance
        return super().settings() | {"evaluator": {key: identity[key] for key in ("sha256", "config")}}

    @functools.cached_property
    def key(self) -> dict[str, np.ndarray]:
        """Which of each excerpt's scored tokens are key tokens, bool [L']."""
        model, short = self.evaluator.load(self.arguments.dtype), max(self.context_length // SHORT, 1)
        found, how = {}, (self.context_length, short, max(short // STEP, 1), self.bos)
        for key, (_, tokens) in self.content.items():
            found[key] = key_tokens(model, tokens[len(self.bos) :], *how)[-self.extended_length :]
        return found

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, dict]]:
        chosen = self.key  # found before the model is extended, so that only one model is in memory beside it
        model, edge = self.extended(run), self.context_length
        for key in keys:
            losses = position_losses(model, self.content[key][1])[-self.extended_length :]
            sides = {"within": slice(edge), "beyond": slice(edge, None)}
            yield key, {side: _sums(losses[part], chosen[key][part]) for side, part in sides.items()}

    def summary(self, run: dict, values: dict[str, dict]) -> dict:
        texts = {self.content[key][0]: value for key, value in values.items()}
        scores = {side: _mean([value[side] for value in texts.values()]) for side in ("within", "beyond")}
        return {"scores": scores, "texts": texts}


def _sums(losses: np.ndarray, chosen: np.ndarray) -> dict:
    return {
        "key": [round(float(losses[chosen].sum()), 6), int(chosen.sum())],
        "all": [round(float(losses.sum()), 6), len(losses)],
    }


def _mean(parts: list[dict]) -> dict:
    """The mean loss over key tokens, None if there are none, and over all."""
    totals = {name: np.sum([part[name] for part in parts], axis=0) for name in ("key", "all")}
    means = {name: float(total / count) if count else None for name, (total, count) in totals.items()}
    return means | {"key_tokens": int(totals["key"][1])}


main = LongPerplexity.main

if __name__ == "__main__":
    command_line.run(main)
