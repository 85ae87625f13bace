"""Passkey retrieval: a five-digit key in filler text, by prompt length and depth (the paper's Figure 4).

    python -m experiments.passkey --model PATH_OR_NAME --lengths 2048 4096 8192

The default lengths reach a quarter beyond the extended context, as the paper's 20k do for 16k.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from eval import passkey
from eval.generation import Request
from eval.intervals import accuracy_interval
from experiments.kit import command_line, experiment, load_model


def main() -> None:
    parser = experiment.parser(__doc__, "passkey")
    parser.add_argument(
        "--lengths",
        type=command_line.count,
        nargs="+",
        metavar="TOKENS",
        help="prompt lengths, the answer included (default: five up to 1.25 L')",
    )
    parser.add_argument(
        "--depths",
        type=command_line.count,
        default=5,
        metavar="N",
        help="number of places for the key, evenly spaced (default 5)",
    )
    parser.add_argument(
        "--keys", type=command_line.count, default=3, metavar="N", help="prompts per length and depth (default 3)"
    )
    arguments = parser.parse_args()

    evaluation = experiment.Evaluation(arguments, "passkey")
    longest = load_model.geometry(evaluation.name).context_length * evaluation.factor
    lengths = arguments.lengths or [round(longest * share / 4) for share in range(1, 6)]
    depths = [i / max(arguments.depths - 1, 1) for i in range(arguments.depths)]
    keys = [f"{n}/{depth:g}/{seed}" for n in lengths for depth in depths for seed in range(arguments.keys)]
    settings = {"lengths": lengths, "depths": depths, "keys": arguments.keys}

    for run, file in evaluation.runs({}, **settings):

        def evaluate(todo: list[str], run: dict = run) -> Iterator[tuple[str, dict]]:
            engine, samples = evaluation.engine(run), {}
            for key in todo:
                length, depth, seed = key.split("/")
                samples[key] = passkey.sample(engine.tokenizer, int(length), float(depth), int(seed))
            requests = [
                Request(key, tuple(engine.tokenizer(sample.prompt).input_ids), passkey.MAX_NEW_TOKENS)
                for key, sample in samples.items()
            ]
            for key, tokens in engine.generate(requests):
                sample, prediction = samples[key], engine.tokenizer.decode(tokens, skip_special_tokens=True)
                score = passkey.score(prediction, sample.answer)
                yield key, {"score": score, "tokens": sample.tokens, "prediction": prediction}

        parts = experiment.measure(run, file, keys, evaluate)
        if parts is not None:
            print(experiment.finish(run, file, parts, {"scores": scores(experiment.values(parts))}))


def scores(values: dict[str, dict]) -> dict:
    """Accuracy by length, and by length and depth, with intervals; prompt lengths in tokens."""
    cells: dict[tuple[int, float], list[dict]] = defaultdict(list)
    for key, value in values.items():
        length, depth, _ = key.split("/")
        cells[int(length), float(depth)].append(value)
    by_length: dict[int, list[dict]] = defaultdict(list)
    for (length, _), found in cells.items():
        by_length[length] += found
    return {
        "by_length": [
            {"length": length, "tokens": max(v["tokens"] for v in found)} | _accuracy(found)
            for length, found in by_length.items()
        ],
        "by_depth": [{"length": length, "depth": depth} | _accuracy(found) for (length, depth), found in cells.items()],
    }


def _accuracy(found: list[dict]) -> dict:
    return accuracy_interval([value["score"] for value in found])


if __name__ == "__main__":
    command_line.run(main)
