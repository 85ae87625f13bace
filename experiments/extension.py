"""Loss against position, up to L': a model extended without training, or one that was fine-tuned for it.

    python -m experiments.extension --scale smollm2 --factor 2
    python -m experiments.extension --model CHECKPOINT --text BOOK.txt

By default every method of the scale's comparison extends its model, and each scores the same books.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from core.errors import InputError, NonFiniteError
from eval.intervals import mean_interval
from eval.position_loss import position_losses
from experiments import cli, harness, models, records, texts

BUCKET = 1024  # positions per point of the curve
BLOCK = 128  # consecutive tokens that a bootstrap resamples together, as neighbouring losses depend on each other


def main() -> None:
    parser = harness.parser(__doc__, "extension")
    parser.add_argument("--books", type=int, default=1, metavar="N", help=f"1 to {texts.AVAILABLE} (default 1)")
    parser.add_argument("--text", type=Path, nargs="+", metavar="FILE", help="score these files instead")
    arguments = parser.parse_args()

    evaluation = harness.Evaluation(arguments, "extension")
    trained = models.geometry(evaluation.name).context_length
    length = round(trained * arguments.factor)
    if length % BUCKET:
        raise InputError(f"L' = {length} is not a multiple of the bucket of {BUCKET} positions; choose another factor.")
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
                yield key, losses.reshape(-1, BLOCK).mean(axis=1).round(6).tolist()

        # The journal serves any choice of books, as each is scored by itself.
        any_text = {key: value for key, value in run.items() if key not in ("data", "identity")}
        parts = harness.measure(run, file, list(keys), evaluate, journal_of=records.identity(**any_text))
        if parts is not None:
            blocks = {keys[key].title: value for key, value in harness.values(parts).items()}
            print(harness.finish(run, file, parts, scores(blocks, trained)))


def scores(blocks: dict[str, list[float]], context_length: int) -> dict:
    """The scored part of a record, and the blocks behind it.

    The mean loss with its interval, per bucket and for three ranges of positions: within L, and the two halves of
    what lies beyond it.
    """
    per_block = np.array(list(blocks.values()))  # [books, blocks]
    length = per_block.shape[1] * BLOCK

    def over(start: int, end: int) -> dict:
        values = per_block[:, start // BLOCK : end // BLOCK].ravel()
        return {"start": start, "end": end, "tokens": values.size * BLOCK, **mean_interval(values)}

    middle = (context_length + length) // 2
    limits = [0, context_length, middle, length]
    return {
        "buckets": [over(start, start + BUCKET) for start in range(0, length, BUCKET)],
        "ranges": [over(start, end) for start, end in itertools.pairwise(limits)],
        "block": BLOCK,
        "blocks": blocks,
    }


def book_tokens(tokenizer, book: texts.Book, length: int) -> torch.Tensor:
    """The book's first length + 1 tokens, without special tokens."""
    # Seven characters a token is more than any English text needs, and spares tokenising the whole book.
    tokens = tokenizer(book.text[: 7 * length], add_special_tokens=False, return_tensors="pt").input_ids[0]
    if len(tokens) <= length:
        raise InputError(f"{book.title!r} has {len(tokens)} tokens; scoring {length} positions needs a longer text.")
    return tokens[: length + 1]


if __name__ == "__main__":
    cli.run(main)
