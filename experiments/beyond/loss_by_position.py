"""Loss against position up to L', for a model extended without training or fine-tuned for L'.

    python -m experiments.beyond.loss_by_position --scale smollm2 --factor 2
    python -m experiments.beyond.loss_by_position --model CHECKPOINT --text BOOK.txt

The first command scores the same book under every method that needs no training. The second scores a fine-tuned
checkpoint as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from core.errors import NonFiniteError
from eval.intervals import mean_interval
from eval.position_loss import position_losses
from experiments.beyond.blocks import book_tokens, divisions
from experiments.kit import command_line, experiment, load_model, records, texts


def main() -> None:
    parser = experiment.parser(__doc__, "extension")
    parser.add_argument(
        "--books",
        type=command_line.count,
        default=1,
        metavar="N",
        help=f"score the first N of the {texts.AVAILABLE} packaged books (default 1)",
    )
    parser.add_argument("--text", type=Path, nargs="+", metavar="FILE", help="score these text files instead")
    parser.add_argument(
        "--excerpts",
        type=command_line.count,
        default=1,
        metavar="N",
        help="excerpts of L' tokens to score from each text, one after the other from its beginning (default 1)",
    )
    arguments = parser.parse_args()

    evaluation = experiment.Evaluation(arguments, "extension")
    trained = load_model.geometry(evaluation.name).context_length
    length = round(trained * evaluation.factor)
    block, _ = divisions(trained, length)
    library = texts.files(arguments.text) if arguments.text else texts.books(arguments.books)
    evaluation.refuse_training_text({book.sha256 for book in library})
    data = {book.title: book.sha256 for book in library}
    # The first excerpt has the book's own title as its name.
    numbers = {f" ({number})" if number else "": number for number in range(arguments.excerpts)}
    keys = {f"{book.title} {book.sha256[:12]}{n}": (book, n) for book in library for n in numbers}
    several = {"excerpts": arguments.excerpts} if arguments.excerpts > 1 else {}
    suffix = f"_books={len(library)}" + "".join(f"_{name}={count}" for name, count in several.items())

    for run, file in evaluation.runs(data, suffix, length=length, **several):

        def evaluate(todo: list[str], run: dict = run, file: Path = file) -> Iterator[tuple[str, list[float]]]:
            loaded = evaluation.loaded
            books = {keys[key][0].sha256: keys[key][0] for key in todo}
            whole = {
                sha256: book_tokens(loaded.tokenizer, book, length * arguments.excerpts)
                for sha256, book in books.items()
            }
            model = evaluation.extended(run).model
            for key in todo:
                book, number = keys[key][0], numbers[keys[key][1]]
                tokens = whole[book.sha256][number * length : (number + 1) * length + 1]
                with tqdm(total=length, desc=book.title, unit="token", leave=False) as bar:
                    try:
                        losses = position_losses(model, tokens, bar.update)
                    except NonFiniteError as error:
                        raise NonFiniteError(f"{file.stem} on {key}: {error}") from error
                yield key, losses.reshape(-1, block).mean(axis=1).round(6).tolist()

        # Books are scored separately, so the journal does not depend on which ones are chosen.
        any_text = {key: value for key, value in run.items() if key not in ("data", "identity", "excerpts")}
        parts = experiment.measure(run, file, list(keys), evaluate, journal_of=records.identity(**any_text))
        if parts is not None:
            blocks = {keys[key][0].title + keys[key][1]: value for key, value in experiment.values(parts).items()}
            print(experiment.finish(run, file, parts, scores(blocks, trained, length)))


def scores(blocks: dict[str, list[float]], context_length: int, length: int) -> dict:
    """The scored part of a record, and the losses of single blocks.

    It holds the mean loss with its interval, per bucket and for three ranges of positions: within L, and the two
    halves of the range beyond L.
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


if __name__ == "__main__":
    command_line.run(main)
