"""Disturbance against loss over dozens of selections of pairs, without training: a test of the paper's central claim.

    python -m experiments.beyond.selections --scale smollm2 --factor 2

A selection is a set of pairs to interpolate. The settings tried are every n̂, and t = 0 for several b, each under both
conventions of the disturbance. Each selection extends the model to L' and scores the same text; settings that give the
same selection are measured once. The record holds Spearman's rank correlation of the averaged disturbance (b = 360,
both conventions) with the loss beyond L.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from core.disturbance import CONVENTIONS, strategy_disturbance
from core.errors import InputError
from core.extend import extend
from core.rope import OURS, RopeGeometry, scale
from eval.intervals import RESAMPLES, mean_interval, resampled_interval
from eval.position_loss import position_losses
from experiments.beyond.blocks import book_tokens, divisions
from experiments.kit import command_line, experiment, given_model, load_model, records, texts

INTERVALS = (45, 90, 180, 360, 720, 1440)


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.beyond.selections")
    given_model.add_arguments(parser, "tiny")
    parser.add_argument(
        "--factor", type=command_line.factor, default=2, metavar="S", help="scaling factor s (default 2)"
    )
    parser.add_argument(
        "--every", type=command_line.count, default=2, metavar="N", help="try n̂ in steps of N (default 2)"
    )
    parser.add_argument("--text", type=Path, metavar="FILE", help="score this file instead of the first book")
    command_line.add_dtype_argument(parser)
    command_line.add_records_arguments(parser)
    arguments = parser.parse_args()
    if arguments.every < 2 or arguments.every % 2:
        raise InputError("n̂ counts two dimensions per pair; give an even --every.")

    measured, factor = given_model.Source(arguments.scale, arguments.model), arguments.factor
    geometry = measured.geometry
    (book,) = texts.files([arguments.text]) if arguments.text else texts.books(1)
    chosen = selections(geometry, factor, arguments.every)
    length = round(geometry.context_length * factor)
    block, _ = divisions(geometry.context_length, length)
    run = {
        "scale": measured.scale,
        "experiment": "selections",
        "factor": factor,
        "model": load_model.provenance(measured.name),
        "length": length,
        "data": {book.title: book.sha256},
    }
    dtype = load_model.chosen_dtype(arguments.dtype, measured.name, measured.scale)
    run |= {"dtype": dtype} if dtype != "float32" else {}
    any_choice = records.identity(**run)  # selections are scored separately, so the journal does not depend on which
    run["selections"] = list(chosen)
    run["identity"] = records.identity(**run)
    file = records.path(arguments.results, measured.scale, "selections", f"s={factor:g}")
    if records.is_done(file, run, arguments.replace):
        print(f"done already: {file}")
        return
    records.state_scale(arguments.results, measured.scale, measured.facts(factor))

    def evaluate(keys: list[str]) -> Iterator[tuple[str, list[float]]]:
        loaded = experiment.load(measured.name, dtype)
        tokens = book_tokens(loaded.tokenizer, book, length)
        for key in keys:
            extend(loaded.model, OURS, factor, **chosen[key][0])
            yield key, position_losses(loaded.model, tokens).reshape(-1, block).mean(axis=1).round(6).tolist()

    parts = experiment.measure(run, file, list(chosen), evaluate, journal_of=any_choice)
    if parts is not None:
        print(experiment.finish(run, file, parts, scores(geometry, factor, chosen, experiment.values(parts), block)))


def selections(geometry: RopeGeometry, factor: float, every: int = 2) -> dict[str, tuple[dict, np.ndarray]]:
    """Each selection's options and pairs (bool [pairs]), by the name of the first setting that gives it."""
    by_n_hat = [
        {"n_hat": n_hat} | ({} if convention == CONVENTIONS[0] else {"convention": convention})
        for convention in CONVENTIONS
        for n_hat in range(0, geometry.head_dim + 1, every)
    ]
    by_intervals = [
        {"intervals": intervals} | ({} if convention == CONVENTIONS[0] else {"convention": convention})
        for convention in CONVENTIONS
        for intervals in INTERVALS
    ]
    found: dict[bytes, tuple[dict, np.ndarray]] = {}
    for options in [*by_n_hat, *by_intervals]:
        pairs = scale(geometry, OURS, factor, **options).interpolated
        found.setdefault(pairs.tobytes(), (options, pairs))
    return {records.run_name(OURS, factor, options): (options, pairs) for options, pairs in found.values()}


def scores(
    geometry: RopeGeometry,
    factor: float,
    chosen: dict[str, tuple[dict, np.ndarray]],
    blocks: dict[str, list[float]],
    block: int,
) -> dict:
    """A row per selection, and the rank correlation of each convention's disturbance with the loss beyond L.

    The correlation's interval resamples selections and blocks of tokens together (percentile bootstrap).
    """
    first = geometry.context_length // block
    strategies = {
        name: strategy_disturbance(geometry.inv_freq, geometry.context_length, factor, convention=name)
        for name in CONVENTIONS
    }
    rows = [
        {
            "options": options,
            "interpolated_pairs": np.flatnonzero(pairs).tolist(),
            "disturbance": {
                name: float(np.where(pairs, interpolation, extrapolation).mean())
                for name, (interpolation, extrapolation) in strategies.items()
            },
            "within": mean_interval(np.array(blocks[key][:first])),
            "beyond": mean_interval(np.array(blocks[key][first:])),
        }
        for key, (options, pairs) in chosen.items()
    ]
    losses = np.array([blocks[key][first:] for key in chosen])  # [selections, blocks]
    rng = np.random.default_rng(0)
    draws = [(rng.integers(0, len(losses), len(losses)), rng.integers(0, losses.shape[1], losses.shape[1]))
             for _ in range(RESAMPLES)]  # fmt: skip
    correlations = {}
    for name in CONVENTIONS:
        moved = np.array([row["disturbance"][name] for row in rows])
        resampled = [spearmanr(moved[some], losses[some][:, columns].mean(axis=1)).statistic for some, columns in draws]
        value = spearmanr(moved, losses.mean(axis=1)).statistic
        correlations[name] = resampled_interval(value, np.array(resampled), len(rows))
    return {"scores": rows, "spearman": correlations, "block": block, "blocks": blocks}


if __name__ == "__main__":
    command_line.run(main)
