"""Disturbance and loss over dozens of selections of pairs, without training.

    python -m experiments.beyond.selections --model smollm2 --factor 2

A selection is a set of pairs to interpolate. The settings tried are every n̂, and t = 0 for several
b, each under both conventions of the disturbance. Each selection extends the model to L' and scores
the same text; settings that give the same selection are measured once. The record holds the
averaged disturbance (b = 360, both conventions) and the loss of each. The selections contain each
other, so they are no sample: they show a curve over n̂.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from core.disturbance import CONVENTIONS, strategy_disturbance
from core.errors import InputError
from core.extend import extend
from core.rope import PROPOSED, RopeGeometry, scale
from eval.intervals import mean_interval
from eval.position_loss import position_losses
from experiments.beyond.blocks import divisions
from experiments.kit import command_line, records, texts
from experiments.kit.command_line import count, option
from experiments.kit.experiment import Experiment

INTERVALS = (45, 90, 180, 360, 720, 1440)


class Selections(Experiment):
    __doc__ = __doc__
    name = "selections"
    unit = "mean loss in nats per token, of each selection"
    methods = None

    @staticmethod
    def add_options(parser) -> None:
        option(parser, "--every", count, "N", "try n̂ in steps of N", 2)
        option(parser, "--texts", Path, "FILE", "score this file instead of the first book")

    def settings(self) -> dict:
        if self.arguments.every % 2:
            raise InputError("n̂ counts two dimensions per pair; give an even --every.")
        divisions(
            self.context_length, self.extended_length
        )  # refuses a length that has no equal blocks
        return {
            "length": self.extended_length,
            "selections": list(self.content),
        } | texts.bos_for_record(self.bos)

    def samples(self) -> dict[str, tuple[dict, np.ndarray]]:
        return selections(self.base.geometry, self.factor, self.arguments.every)

    def data(self) -> dict:
        (book,) = texts.files([self.arguments.texts]) if self.arguments.texts else texts.books(1)
        self.tokens = texts.sequence(self.base.tokenizer, book, self.extended_length, self.bos)
        return {book.title: book.sha256}

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, list[float]]]:
        block, _ = divisions(self.context_length, self.extended_length)
        for key in keys:
            extend(self.loaded, PROPOSED, self.factor, **self.content[key][0])
            losses = position_losses(self.loaded, self.tokens)[-self.extended_length :]
            yield key, losses.reshape(-1, block).mean(axis=1).round(6).tolist()

    def summary(self, run: dict, values: dict[str, list[float]]) -> dict:
        block, _ = divisions(self.context_length, self.extended_length)
        return scores(self.base.geometry, self.factor, self.content, values, block)


def selections(
    geometry: RopeGeometry, factor: float, every: int = 2
) -> dict[str, tuple[dict, np.ndarray]]:
    """Each selection's options and pairs (bool [pairs]), by the name of the first setting that
    gives it."""
    by_n_hat = [{"n_hat": n_hat} for n_hat in range(0, geometry.head_dim + 1, every)]
    by_intervals = [{"intervals": intervals} for intervals in INTERVALS]
    conventions = [
        {},
        *({"convention": name} for name in CONVENTIONS[1:]),
    ]  # the first is the default
    tried = [
        options | convention
        for group in (by_n_hat, by_intervals)
        for convention in conventions
        for options in group
    ]
    found: dict[bytes, tuple[dict, np.ndarray]] = {}
    for options in tried:
        pairs = scale(geometry, PROPOSED, factor, **options).interpolated
        found.setdefault(pairs.tobytes(), (options, pairs))
    return {
        records.run_name(PROPOSED, factor, options): (options, pairs)
        for options, pairs in found.values()
    }


def scores(
    geometry: RopeGeometry,
    factor: float,
    chosen: dict[str, tuple[dict, np.ndarray]],
    blocks: dict[str, list[float]],
    block: int,
) -> dict:
    """A row per selection."""
    first = geometry.context_length // block
    strategies = {
        name: strategy_disturbance(
            geometry.inv_freq, geometry.context_length, factor, convention=name
        )
        for name in CONVENTIONS
    }
    rows = [
        {
            "options": options,
            "interpolated_pairs": np.flatnonzero(pairs).tolist(),
            "disturbance": {
                name: float(np.where(pairs, interpolation, extrapolation).mean())
                for name, (interpolation, extrapolation) in strategies.items()
            },
            "within": mean_interval(np.array(blocks[key][:first])),
            "beyond": mean_interval(np.array(blocks[key][first:])),
        }
        for key, (options, pairs) in chosen.items()
    ]
    return {"scores": rows, "block": block, "blocks": blocks}


main = Selections.main

if __name__ == "__main__":
    command_line.run(main)
