"""Loss against position, up to L': a model extended without training, or one that was fine-tuned for it.

    python -m experiments.extension --scale smollm2 --factor 2
    python -m experiments.extension --model CHECKPOINT --text BOOK.txt

The first command scores the same book under every method that needs no training, the second a fine-tuned checkpoint as
it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from core.errors import InputError, NonFiniteError
from eval.intervals import mean_interval
from eval.position_loss import position_losses
from experiments.lab import cli, harness, models, records, texts

BUCKET = 1024  # positions per point of the curve, where L and L' are multiples of it
# Consecutive tokens that a bootstrap resamples together, as neighbouring losses depend on each other.
BLOCK, SHORTEST_BLOCK = 128, 16


def main() -> None:
    parser = harness.parser(__doc__, "extension")
    parser.add_argument(
        "--books", type=cli.count, default=1, metavar="N", help=f"the first N of {texts.AVAILABLE} books (default 1)"
    )
    parser.add_argument("--text", type=Path, nargs="+", metavar="FILE", help="score these text files instead")
    arguments = parser.parse_args()

    evaluation = harness.Evaluation(arguments, "extension")
    trained = models.geometry(evaluation.name).context_length
    length = round(trained * evaluation.factor)
    block, _ = divisions(trained, length)
    library = texts.files(arguments.text) if arguments.text else texts.books(arguments.books)
    evaluation.refuse_training_text({book.sha256 for book in library})
    data = {book.title: book.sha256 for book in library}
    keys = {f"{book.title} {book.sha256[:12]}": book for book in library}

    for run, file in evaluation.runs(data, f"_books={len(library)}", length=length):

        def evaluate(todo: list[str], run: dict = run, file: Path = file) -> Iterator[tuple[str, list[float]]]:
            loaded = evaluation.loaded
            samples = {key: book_tokens(loaded.tokenizer, keys[key], length) for key in todo}
            model = evaluation.extended(run).model
            for key, tokens in samples.items():
                with tqdm(total=length, desc=keys[key].title, unit="token", leave=False) as bar:
                    try:
                        losses = position_losses(model, tokens, bar.update)
                    except NonFiniteError as error:
                        raise NonFiniteError(f"{file.stem} on {key}: {error}") from error
                yield key, losses.reshape(-1, block).mean(axis=1).round(6).tolist()

        # The journal serves any choice of books, as each is scored by itself.
        any_text = {key: value for key, value in run.items() if key not in ("data", "identity")}
        parts = harness.measure(run, file, list(keys), evaluate, journal_of=records.identity(**any_text))
        if parts is not None:
            blocks = {keys[key].title: value for key, value in harness.values(parts).items()}
            print(harness.finish(run, file, parts, scores(blocks, trained, length)))


def divisions(context_length: int, length: int) -> tuple[int, int]:
    """Tokens in a block of the bootstrap and positions in a bucket of the curve: divisors of L and of L' − L.

    They are BLOCK and BUCKET where those divide both, else the largest smaller ones; a bucket holds whole blocks, and
    what lies beyond L at least two.

    Raises:
        InputError: L' exceeds L by too little, or the two have no such divisor.
    """
    beyond = length - context_length
    common = math.gcd(context_length, beyond)
    block = max((n for n in range(1, min(BLOCK, beyond // 2) + 1) if common % n == 0), default=0)
    if block < SHORTEST_BLOCK:
        raise InputError(
            f"L = {context_length} and L' = {length} cannot be divided into equal blocks of {SHORTEST_BLOCK} to "
            f"{BLOCK} tokens; choose another factor."
        )
    return block, max(n for n in range(block, max(BUCKET, block) + 1, block) if common % n == 0)


def scores(blocks: dict[str, list[float]], context_length: int, length: int) -> dict:
    """The scored part of a record, and the blocks behind it.

    The mean loss with its interval, per bucket and for three ranges of positions: within L, and the two halves of
    what lies beyond it.
    """
    per_block = np.array(list(blocks.values()))  # [books, blocks]
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


def book_tokens(tokenizer, book: texts.Book, length: int) -> torch.Tensor:
    """The book's first length + 1 tokens, without special tokens."""
    found = texts.tokens(tokenizer, book.text, length + 1)
    if len(found) <= length:
        raise InputError(f"{book.title!r} has {len(found)} tokens; scoring {length} positions needs a longer text.")
    return found


if __name__ == "__main__":
    cli.run(main)
