"""Sliding-window perplexity, S = 256, at several evaluation lengths (the paper's perplexity table).

    python -m experiments.perplexity --model PATH_OR_NAME --lengths 4096 8192 --text BOOK.txt

The record holds perplexity by both conventions of averaging: over tokens, and over the means of windows. It also holds
the summed loss and the number of scored tokens of every window, keyed TEXT/LENGTH/BEGIN, so that methods can be paired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from core.clex import factor_for
from core.errors import InputError
from eval import perplexity
from eval.intervals import resampled_interval, resampled_ratio
from experiments.beyond.blocks import BUCKET
from experiments.kit import command_line, experiment, load_model, texts


def main() -> None:
    parser = experiment.parser(__doc__, "perplexity")
    parser.add_argument(
        "--lengths", type=command_line.count, nargs="+", metavar="TOKENS", help="window lengths (default: L and L')"
    )
    parser.add_argument(
        "--stride",
        type=command_line.count,
        nargs="+",
        default=[256],
        metavar="S",
        help="tokens from one window to the next: one number, or one per length (default 256)",
    )
    parser.add_argument(
        "--books",
        type=command_line.count,
        default=1,
        metavar="N",
        help=f"score the first N of the {texts.AVAILABLE} packaged books (default 1)",
    )
    parser.add_argument("--text", type=Path, nargs="+", metavar="FILE", help="score these text files instead")
    parser.add_argument(
        "--tokens", type=command_line.count, metavar="N", help="score the first N tokens of each text (default: all)"
    )
    parser.add_argument(
        "--by-position", action="store_true", help=f"also record each window's mean loss for every {BUCKET} positions"
    )
    arguments = parser.parse_args()

    evaluation = experiment.Evaluation(arguments, "perplexity")
    trained = load_model.geometry(evaluation.name).context_length
    lengths = arguments.lengths or [trained, round(trained * evaluation.factor)]
    strides = arguments.stride * (len(lengths) if len(arguments.stride) == 1 else 1)
    if len(strides) != len(lengths):
        raise InputError(
            f"there are {len(strides)} strides for {len(lengths)} windows; give one for all or one for each."
        )
    library = texts.files(arguments.text) if arguments.text else texts.books(arguments.books)
    evaluation.refuse_training_text({book.sha256 for book in library})
    for length, step in zip(lengths, strides):
        perplexity.windows(length + 1, length, step)  # refuses an impossible stride before any work
    data = {book.title: book.sha256 for book in library}
    stride = strides if len(set(strides)) > 1 else strides[0]
    settings = {"lengths": lengths, "stride": stride, "tokens": arguments.tokens}
    if arguments.by_position:
        settings["bucket"] = BUCKET

    # A record of whole texts stands beside that of an excerpt.
    for run, file in evaluation.runs(data, "" if arguments.tokens else "_whole", **settings):
        tokenizer = evaluation.loaded.tokenizer
        tokens = {book.title: texts.tokens(tokenizer, book.text, arguments.tokens) for book in library}
        # The longest windows come first, so that processes that take windows in turn get equal work.
        spans = {}
        for length, step in sorted(zip(lengths, strides), reverse=True):
            for title, ids in tokens.items():
                if len(ids) <= length:
                    raise InputError(
                        f"{title!r} has {len(ids)} tokens, no more than the window of {length}; give a longer text."
                    )
                for span in perplexity.windows(len(ids), length, step):
                    spans[f"{title}/{length}/{span[0]}"] = (title, span)

        def evaluate(
            keys: list[str], run: dict = run, tokens: dict = tokens, spans: dict = spans
        ) -> Iterator[tuple[str, dict]]:
            model = evaluation.extended(run).model
            # One pass gives the losses of all windows that begin at the same token and have the same RoPE scale.
            passes: dict[tuple, list[str]] = defaultdict(list)
            for key in keys:
                title, (begin, end, _) = spans[key]
                passes[title, begin, factor_for(model, end - begin - 1)].append(key)
            for (title, begin, _), nested in passes.items():
                longest = max(spans[key][1][1] for key in nested)
                first = begin + 1 if arguments.by_position else min(spans[key][1][2] for key in nested)
                (losses,) = perplexity.window_losses(model, tokens[title], [(begin, longest, first)])
                for key in nested:
                    _, (_, end, start) = spans[key]
                    own = losses[start - first : end - first]
                    value = {"sum": float(own.sum()), "tokens": len(own)}
                    if arguments.by_position:
                        buckets = np.split(losses[: end - first], range(BUCKET, end - first, BUCKET))
                        value["by_position"] = [round(float(bucket.mean()), 6) for bucket in buckets]
                    yield key, value

        def place(key: str, spans: dict = spans) -> tuple[str, int]:
            title, (begin, _, _) = spans[key]
            return title, begin

        parts = experiment.measure(run, file, list(spans), evaluate, together=place)
        if parts is not None:
            values = experiment.values(parts)
            found = {"scores": scores(values, lengths)}
            found["by_window"] = {key: [value["sum"], value["tokens"]] for key, value in values.items()}
            if arguments.by_position:
                found["by_position"] = {key: value["by_position"] for key, value in values.items()}
            print(experiment.finish(run, file, parts, found))


def scores(values: dict[str, dict], lengths: list[int]) -> list[dict]:
    """Perplexity at each length under both conventions, with bootstrap intervals over windows."""
    found = []
    for length in lengths:
        own = [value for key, value in values.items() if key.rsplit("/", 2)[1] == str(length)]
        sums, counts = (np.array([value[name] for value in own], dtype=np.float64) for name in ("sum", "tokens"))
        token = np.exp(resampled_ratio(sums, counts))
        window = np.exp(resampled_ratio(sums / counts, np.ones(len(own))))
        found.append(
            {"length": length, "windows": len(own), "tokens": int(counts.sum())}
            | {"token": resampled_interval(np.exp(sums.sum() / counts.sum()), token, len(own))}
            | {"window": resampled_interval(np.exp((sums / counts).mean()), window, len(own))}
        )
    return found


if __name__ == "__main__":
    command_line.run(main)
