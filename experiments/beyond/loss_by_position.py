"""Loss against position up to L', for a model extended without training or fine-tuned for L'.

    python -m experiments.beyond.loss_by_position --model smollm2 --factor 2
    python -m experiments.beyond.loss_by_position --model CHECKPOINT --text BOOK.txt

The first command scores the same book under every method that needs no training. The second scores
a fine-tuned checkpoint as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from eval.intervals import mean_interval
from eval.position_loss import position_losses
from experiments.beyond.blocks import divisions
from experiments.kit import command_line, texts
from experiments.kit.command_line import count, option
from experiments.kit.experiment import Experiment


class LossByPosition(Experiment):
    __doc__ = __doc__
    name = "loss_by_position"
    unit = "mean loss in nats per token, by position"

    @staticmethod
    def add_options(parser) -> None:
        texts.add_arguments(parser)
        excerpts = "excerpts of L' tokens of each text, one after the other from its beginning"
        option(parser, "--excerpts", count, "N", excerpts, 1)

    def settings(self) -> dict:
        divisions(
            self.context_length, self.extended_length
        )  # refuses a length that has no equal blocks
        excerpts = {"excerpts": self.arguments.excerpts} if self.arguments.excerpts > 1 else {}
        return {"length": self.extended_length} | excerpts | texts.bos_for_record(self.bos)

    def suffix(self) -> str:
        return f"_books={len(self.books)}" + (
            f"_excerpts={self.arguments.excerpts}" if self.arguments.excerpts > 1 else ""
        )

    def data(self) -> dict:
        self.books = texts.chosen(self.arguments)
        self.refuse_training_text(texts.hashes(self.books))
        return {book.title: book.sha256 for book in self.books}

    def samples(self) -> dict[str, tuple]:
        """(the excerpt's name, its tokens); the first excerpt of a book has the book's own title as
        its name."""
        length, samples = self.extended_length, {}
        for book in self.books:
            for number in range(self.arguments.excerpts):
                excerpt = f" ({number})" if number else ""
                tokens = texts.sequence(self.base.tokenizer, book, length, self.bos, number)
                samples[f"{book.title} {book.sha256[:12]}{excerpt}"] = (
                    book.title + excerpt,
                    tokens,
                )
        return samples

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, list[float]]]:
        block, _ = divisions(self.context_length, self.extended_length)
        model = self.extended(run)
        for key in keys:
            _, tokens = self.content[key]
            losses = position_losses(model, tokens, self.extended_length)
            yield key, losses.reshape(-1, block).mean(axis=1).round(6).tolist()

    def summary(self, run: dict, values: dict[str, list[float]]) -> dict:
        blocks = {self.content[key][0]: value for key, value in values.items()}
        return scores(blocks, self.context_length, self.extended_length)


def scores(blocks: dict[str, list[float]], context_length: int, length: int) -> dict:
    """The scored part of a record, and the losses of single blocks.

    It holds the mean loss with its interval, per bucket and for three ranges of positions: within
    L, and the two halves of the range beyond L.
    """
    per_block = np.array(list(blocks.values()))  # [excerpts, blocks]
    block, bucket = divisions(context_length, length)

    def over(start: int, end: int) -> dict:
        values = per_block[:, start // block : end // block].ravel()
        return {"start": start, "end": end, "tokens": values.size * block, **mean_interval(values)}

    middle = context_length + (length - context_length) // (2 * block) * block
    limits = [0, context_length, middle, length]
    return {
        "buckets": [over(start, start + bucket) for start in range(0, length, bucket)],
        "ranges": [over(start, end) for start, end in itertools.pairwise(limits)],
        "block": block,
        "blocks": blocks,
    }


main = LossByPosition.main

if __name__ == "__main__":
    command_line.run(main)
