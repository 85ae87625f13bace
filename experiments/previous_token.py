"""Where heads that attend a few tokens back attend under each method, within L (beyond the paper).

    python -m experiments.previous_token --scale tiny --factor 2
    python -m experiments.previous_token --model DIR            a fine-tuned checkpoint

The heads are found in the scale's base model as it was pre-trained: at least a third of a head's attention goes k
tokens back, for one k of 1 … 8. The record holds how much goes there under the method, and how much s·k tokens back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from core.errors import InputError
from eval.intervals import mean_interval
from eval.previous_token import BLOCK, FARTHEST, Head, attention_by_offset, find
from experiments.extension import book_tokens
from experiments.lab import cli, harness, models, texts


def main() -> None:
    parser = harness.parser(__doc__, "previous_token")
    parser.add_argument(
        "--tokens", type=cli.count, metavar="N", help="tokens of the text to read, at most L (default: L, at most 1024)"
    )
    parser.add_argument("--text", type=Path, metavar="FILE", help="read this file instead of the first book")
    arguments = parser.parse_args()
    evaluation = harness.Evaluation(arguments, "previous_token")  # a fine-tuned checkpoint states its own factor
    base = evaluation.training["scale"] if evaluation.training else evaluation.name
    trained = models.geometry(base).context_length
    count = min(1024, trained) if arguments.tokens is None else arguments.tokens
    if not 2 * BLOCK <= count <= trained:
        raise InputError(f"--tokens is {count}; give a number from {2 * BLOCK} to L = {trained}.")
    if (reach := round(FARTHEST * evaluation.factor)) > BLOCK:
        raise InputError(
            f"a factor of {evaluation.factor:g} is too large to follow these heads; give at most {BLOCK // FARTHEST}."
        )
    (book,) = texts.files([arguments.text]) if arguments.text else texts.books(1)
    found: list[Head] = []

    for run, file in evaluation.runs({book.title: book.sha256}, tokens=count):

        def evaluate(todo: list[str], run: dict = run) -> Iterator[tuple[str, dict]]:
            (key,) = todo
            tokens = book_tokens(evaluation.loaded.tokenizer, book, count)[:-1]
            if not found:
                plain = models.load(base, arguments.dtype).model
                found.extend(find(attention_by_offset(plain, tokens)))
            if not found:
                raise InputError(f"no head of {base} attends a fixed number of tokens back; take another model.")
            attention = attention_by_offset(evaluation.extended(run).model, tokens, reach)
            yield key, {"heads": [vars(head) for head in found], **shares(attention, found, run["factor"])}

        parts = harness.measure(run, file, [book.title], evaluate)
        if parts is not None:
            (value,) = harness.values(parts).values()
            print(harness.finish(run, file, parts, {"scores": scores(value)}))


def shares(attention: np.ndarray, heads: list[Head], factor: float) -> dict[str, list[list[float]]]:
    """Attention at each head's own offset, and at s times that offset: for each head a list of blocks."""
    at = {"own": 1.0, "scaled": factor}
    return {
        name: [attention[head.layer, head.head, round(times * head.offset)].round(6).tolist() for head in heads]
        for name, times in at.items()
    }


def scores(value: dict) -> dict:
    """In percent: the mean over heads with an interval over blocks of 128 queries, and the mean of each head."""
    rows = [
        head | {name: 100 * float(np.mean(value[name][index])) for name in ("own", "scaled")}
        for index, head in enumerate(value["heads"])
    ]
    means = {name: mean_interval(100 * np.mean(value[name], axis=0)) for name in ("own", "scaled")}
    return {"heads": rows, **means}


if __name__ == "__main__":
    cli.run(main)
