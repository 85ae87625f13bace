"""Extend a model without training and score public-domain books: loss against position, up to L'.

By default every method of the scale's comparison is run, each on the same books; one record per method.
The same command again skips what is done and finishes what is not.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from core.errors import InputError, NonFiniteError
from core.extend import extend
from core.rope import scale
from eval.intervals import mean_interval
from eval.position_loss import position_losses
from experiments import cli, harness, journal, models, records, scales, texts

BUCKET = 1024  # positions per point of the curve
BLOCK = 128  # consecutive tokens that a bootstrap resamples together, as neighbouring losses depend on each other


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m experiments.extension")
    parser.add_argument("--scale", default="smollm2", help=f"one of {', '.join(scales.SCALES)} (default smollm2)")
    cli.add_method_arguments(parser, several=True)
    parser.add_argument("--books", type=int, default=1, metavar="N", help=f"1 to {texts.AVAILABLE} (default 1)")
    parser.add_argument("--text", type=Path, nargs="+", metavar="FILE", help="score these files instead")
    cli.add_results_argument(parser)
    arguments = parser.parse_args()

    preset = scales.get(arguments.scale)
    if arguments.method:
        comparison = cli.chosen_methods(arguments)
    else:
        comparison = preset.comparison(arguments.factor)
    library = texts.files(arguments.text) if arguments.text else texts.books(arguments.books)
    measure(arguments.scale, comparison, arguments.factor, library, arguments.results)


def measure(
    scale_name: str, comparison: list[tuple[str, dict]], factor: float, library: list[texts.Book], results: Path
) -> None:
    """Write one record per method of `comparison`, skipping those that exist."""
    geometry = scales.get(scale_name).geometry
    length = round(geometry.context_length * factor)
    if length % BUCKET:
        raise InputError(f"L' = {length} is not a multiple of the bucket of {BUCKET} positions; choose another factor.")
    runs = []
    for method, options in comparison:
        scale(geometry, method, factor, **options)  # refuse a bad method or option before the long work
        run = {
            "scale": scale_name,
            "experiment": "extension",
            "method": method,
            "factor": factor,
            "options": options,
            "model": models.provenance(scale_name) | harness.weights(options),
            "length": length,
        }
        # The journal serves any choice of books, as each is scored by itself.
        parts = journal.path(results, scale_name, "extension", records.identity(**run))
        run["data"] = {book.title: book.sha256 for book in library}
        run["identity"] = records.identity(**run)
        name = records.run_name(method, factor, options) + f"_books={len(library)}"
        file = records.path(results, scale_name, "extension", name)
        if records.is_done(file, run["identity"]):
            print(f"done already: {file}")
        else:
            runs.append((file, run, parts))
    if not runs:
        return

    loaded = models.load(scale_name)
    samples = {_key(book): book_tokens(loaded.tokenizer, book, length) for book in library}
    with tqdm(total=len(runs) * len(samples) * length, unit="token", unit_scale=True) as bar:
        for file, run, parts_file in runs:
            bar.set_description(file.stem)
            extend(loaded.model, run["method"], factor, **run["options"])
            parts = journal.Journal(parts_file)
            for key, tokens in samples.items():
                if key in parts:
                    bar.update(length)
                    continue
                started = time.perf_counter()
                try:
                    losses = position_losses(loaded.model, tokens, bar.update)
                except NonFiniteError as error:
                    raise NonFiniteError(f"{file.stem} on {key}: {error}") from error
                blocks = losses.reshape(-1, BLOCK).mean(axis=1).round(6).tolist()
                parts.add(key, {"blocks": blocks, "seconds": round(time.perf_counter() - started, 1)})
            blocks = {book.title: parts[_key(book)]["blocks"] for book in library}
            seconds = round(sum(parts[key]["seconds"] for key in samples), 1)
            records.write(file, run | scores(blocks, geometry.context_length) | {"seconds": seconds})


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


def _key(book: texts.Book) -> str:
    return f"{book.title} {book.sha256[:12]}"


def book_tokens(tokenizer, book: texts.Book, length: int) -> torch.Tensor:
    """The book's first length + 1 tokens, without special tokens."""
    # Seven characters a token is more than any English text needs, and spares tokenising the whole book.
    tokens = tokenizer(book.text[: 7 * length], add_special_tokens=False, return_tensors="pt").input_ids[0]
    if len(tokens) <= length:
        raise InputError(f"{book.title!r} has {len(tokens)} tokens; scoring {length} positions needs a longer text.")
    return tokens[: length + 1]


if __name__ == "__main__":
    cli.run(main)
