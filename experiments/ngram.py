"""Compare a base model's loss on unseen books with that of Kneser-Ney n-grams trained on the same books.

    python -m experiments.ngram --model models/tiny --data DIR --text BOOK.txt

DIR holds the books that the model was trained on. The n-grams are counted on --train-tokens of their tokens, spread
evenly over the books. The model reads windows of its context length that move by 256 tokens, as in
experiments/perplexity.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from core import files
from eval import perplexity
from eval.intervals import RESAMPLES, resampled_interval
from experiments.lab import cli, harness, models, texts
from experiments.lab.pretraining import corpus
from experiments.lab.pretraining.ngram import KneserNey

ORDERS = (3, 4, 5)
STRIDE = 256


def main() -> None:
    parser = harness.parser(__doc__, "ngram")
    parser.add_argument(
        "--data",
        type=cli.existing_directory,
        metavar="DIR",
        help="directory of the training books (default: the packaged books)",
    )
    parser.add_argument(
        "--unseen",
        type=cli.existing_file,
        nargs="+",
        metavar="FILE",
        help="leave out training books that share text with these files, as in experiments.pretrain",
    )
    parser.add_argument(
        "--train-tokens",
        type=cli.count,
        nargs="+",
        default=[10_000_000],
        metavar="N",
        help="tokens to count n-grams on; several numbers give several n-gram models (default 10000000)",
    )
    parser.add_argument(
        "--books",
        type=cli.count,
        default=2,
        metavar="N",
        help=f"score the first N of the {texts.AVAILABLE} packaged books (default 2)",
    )
    parser.add_argument("--text", type=Path, nargs="+", metavar="FILE", help="score these text files instead")
    parser.add_argument(
        "--tokens",
        type=cli.count,
        default=50_000,
        metavar="N",
        help="score the first N tokens of each text (default 50000)",
    )
    arguments = parser.parse_args()

    evaluation = harness.Evaluation(arguments, "ngram")
    length = models.geometry(evaluation.name).context_length
    library = texts.files(arguments.text) if arguments.text else texts.books(arguments.books)
    settings = {"train_tokens": arguments.train_tokens, "tokens": arguments.tokens, "length": length}
    if arguments.data:  # else the packaged books
        read = [*(file for file in sorted(arguments.data.iterdir()) if file.is_file()), *(arguments.unseen or [])]
        settings["read"] = {file.name: files.sha256(file) for file in read}
    keys = ["model", *(f"{order}-gram/{count}" for count in arguments.train_tokens for order in ORDERS)]

    for run, file in evaluation.runs({book.title: book.sha256 for book in library}, **settings):
        loaded = evaluation.extended(run)
        scored = [_ids(loaded.tokenizer, book.text)[: arguments.tokens] for book in library]

        def evaluate(todo: list[str], scored: list = scored, loaded: models.Loaded = loaded) -> Iterator[tuple]:
            trained = corpus.load(arguments.data, evaluation=arguments.unseen).train if set(todo) - {"model"} else []
            for key in todo:
                if key == "model":
                    yield key, [_block_means(_model_losses(loaded.model, ids, length)) for ids in scored]
                    continue
                order, count = key.split("-gram/")
                seen = sample(trained, loaded.tokenizer, int(count))
                gram = KneserNey(seen, len(loaded.tokenizer), int(order))
                # The first tokens have no full n-gram, so they are dropped for every order and for the model.
                yield key, [_block_means(gram.losses(ids)[max(ORDERS) - int(order) :]) for ids in scored]

        parts = harness.measure(run, file, keys, evaluate)
        if parts is not None:
            print(harness.finish(run, file, parts, {"scores": scores(harness.values(parts))}))


def sample(books: list[str], tokenizer, tokens: int) -> np.ndarray:
    """The first tokens of every book, equally many of each, `tokens` in all."""
    room = tokens // len(books)
    return np.concatenate([_ids(tokenizer, book[: 8 * room])[:room] for book in books])


def scores(values: dict[str, list[list[float]]]) -> dict:
    """The loss of each in nats per token, and each n-gram's excess over the model, paired by block.

    Both have bootstrap 95 % intervals.
    """
    means = {key: np.concatenate([np.array(blocks) for blocks in value]) for key, value in values.items()}
    count = len(means["model"])
    drawn = np.random.default_rng(0).integers(0, count, (RESAMPLES, count))

    def interval(blocks: np.ndarray) -> dict:
        return resampled_interval(blocks.mean(), blocks[drawn].mean(axis=1), count)

    return {
        "loss": {key: interval(blocks) for key, blocks in means.items()},
        "excess": {key: interval(blocks - means["model"]) for key, blocks in means.items() if key != "model"},
    }


def _ids(tokenizer, text: str) -> np.ndarray:
    return np.array(tokenizer(text, add_special_tokens=False).input_ids)


def _model_losses(model, ids: np.ndarray, length: int) -> np.ndarray:
    """The losses of every token from the first one that has an n-gram of the highest order."""
    spans = perplexity.windows(len(ids), length, STRIDE)
    losses = np.concatenate(list(perplexity.window_losses(model, torch.tensor(ids), spans)))
    return losses[max(ORDERS) - 2 :]  # the text's first token has no loss


def _block_means(losses: np.ndarray, size: int = 128) -> list[float]:
    """Means over blocks of `size` tokens; the rest at the end is left out."""
    whole = len(losses) // size * size
    return losses[:whole].reshape(-1, size).mean(axis=1).tolist()


if __name__ == "__main__":
    cli.run(main)
