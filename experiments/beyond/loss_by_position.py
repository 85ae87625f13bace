"""Loss against position up to L', for a model extended without training or fine-tuned for L'.

    python -m experiments.beyond.loss_by_position --model smollm2 --factor 2
    python -m experiments.beyond.loss_by_position --model CHECKPOINT --texts BOOK.txt

The first command scores the same book under every method that needs no training. The second scores
a fine-tuned checkpoint as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from eval.intervals import mean_interval
from experiments.beyond.blocks import divisions
from experiments.kit import command_line, texts
from experiments.kit.experiment import Experiment, Prepared


class LossByPosition(Experiment):
    name = "loss_by_position"
    unit = (
        "mean loss in nats per token, by position (`make table_loss_by_position` has the intervals "
        "over books)"
    )

    @staticmethod
    def add_options(parser) -> None:
        texts.add_arguments(parser)

    def prepare(self) -> Prepared:
        """A sample is a text: its title and its first L' tokens."""
        length = self.extended_length
        divisions(self.context_length, length)  # refuses a length that has no equal blocks
        given = texts.scored(self)
        books = texts.sequences(self.model.tokenizer, given, length, self.bos)
        samples = {
            f"{book.title} {book.sha256[:12]}": (book.title, tokens)
            for book, tokens in books.items()
        }
        settings = {"length": length, **texts.bos_for_record(self.bos)}
        data = {book.title: book.sha256 for book in books}
        return Prepared(samples, settings, data, suffix=f"_books={len(books)}")

    def measure(self, model, requests: list) -> Iterator[tuple[str, list[float]]]:
        from eval import perplexity  # with torch, which --help does without

        block, _ = divisions(self.context_length, self.extended_length)
        for key, (_, tokens) in requests:
            losses = perplexity.position_losses(model, tokens, self.extended_length)
            yield key, losses.reshape(-1, block).mean(axis=1).round(6).tolist()

    def summary(self, values: dict[str, list[float]]) -> dict:
        samples = self.prepared.samples
        blocks = {samples[key][0]: value for key, value in values.items()}
        return scores(blocks, self.context_length, self.extended_length)

    def rows(self, scores: dict) -> Iterator[tuple[str, ...]]:
        # the record's intervals are over blocks, of which a book has several
        for each in scores["ranges"]:
            yield f"tokens {each['start']} to {each['end']}", f"{each['mean']:.4g}"


def scores(blocks: dict[str, list[float]], context_length: int, length: int) -> dict:
    """The scored part of a record, and the losses of single blocks.

    It holds the mean loss with its interval, per bucket and for three ranges of positions: within
    L, and the two halves of the range beyond L.
    """
    per_block = np.array(list(blocks.values()))  # [texts, blocks]
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
