"""How far back attention looks within L: its share by the distance from query to key (beyond the paper).

    python -m experiments.attention_distance --scale smollm2 --books 3

The model is measured as it was pre-trained. The record holds "distances", the edges of bins from 0 to L in tokens, and
"mass", the share of attention in each bin, averaged over layers, heads, query positions and books. It also holds the
shares of each layer and of each quarter of the query positions. The method dprope-relative takes the record as its
--profile.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from core.relative import bin_edges
from tqdm import tqdm

from core.errors import InputError
from eval.attention_distance import FIRST, attention_by_distance
from experiments.extension import book_tokens
from experiments.lab import cli, harness, models, records, source, texts

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
SHORTEST = 64  # the least L


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m experiments.attention_distance")
    source.add_arguments(parser, "tiny")
    parser.add_argument(
        "--books",
        type=cli.count,
        default=1,
        metavar="N",
        help=f"read the first N of the {texts.AVAILABLE} packaged books (default 1)",
    )
    parser.add_argument("--text", type=Path, nargs="+", metavar="FILE", help="read these text files instead")
    parser.add_argument(
        "--queries",
        type=cli.count,
        default=512,
        metavar="N",
        help="query positions to read in each text, evenly spaced (default 512)",
    )
    parser.add_argument(
        "--sinks",
        type=cli.none_or_more,
        default=1,
        metavar="N",
        help="leave out the first N keys, the attention sinks (default 1)",
    )
    cli.add_dtype_argument(parser)
    cli.add_records_arguments(parser)
    arguments = parser.parse_args()

    measured = source.Source(arguments.scale, arguments.model)
    length = measured.geometry.context_length
    if length < SHORTEST or arguments.sinks > length // 8:
        raise InputError(
            f"L = {length} with {arguments.sinks} sinks is too short; take a model of L ≥ {SHORTEST}, and sinks ≤ L/8."
        )
    library = texts.files(arguments.text) if arguments.text else texts.books(arguments.books)
    keys = {f"{book.title} {book.sha256[:12]}": book for book in library}
    queries, edges = spaced(length, arguments.queries, arguments.sinks), bin_edges(length)
    run = {
        "scale": measured.scale,
        "experiment": "attention_distance",
        "model": models.provenance(measured.name),
        "dtype": models.chosen_dtype(arguments.dtype, measured.name, measured.scale),
        "length": length,
        "queries": len(queries),
        "sinks": arguments.sinks,
    }
    any_text = records.identity(**run)  # books are measured separately, so the journal does not depend on the choice
    run["data"] = {book.title: book.sha256 for book in library}
    run["identity"] = records.identity(**run)
    file = records.path(arguments.results, measured.scale, "attention_distance", f"L={length}")
    if records.is_done(file, run, arguments.replace):
        print(f"done already: {file}")
        return
    facts = measured.facts(1)
    facts |= {"factors": [factor for factor in facts["factors"] if factor > 1]}  # nothing is extended here
    records.state_scale(arguments.results, measured.scale, facts)

    def evaluate(todo: list[str]) -> Iterator[tuple[str, dict]]:
        loaded = harness.load(measured.name, run["dtype"])
        for key in todo:
            tokens = book_tokens(loaded.tokenizer, keys[key], length)[:-1]
            with tqdm(desc=keys[key].title, unit="layer", leave=False) as bar:
                found = attention_by_distance(loaded.model, tokens, edges, queries, arguments.sinks, bar.update)
            yield (
                key,
                {
                    "layers": (found.mass.sum(axis=1) / len(queries)).round(9).tolist(),
                    "quarters": (found.mass.mean(axis=0) / np.maximum(found.queries, 1)[:, None]).round(9).tolist(),
                    "first_keys": found.first_keys.round(6).tolist(),
                },
            )

    parts = harness.measure(run, file, list(keys), evaluate, journal_of=any_text)
    if parts is not None:
        print(harness.finish(run, file, parts, scores(edges, list(harness.values(parts).values()))))


def spaced(length: int, count: int, sinks: int) -> np.ndarray:
    """Up to `count` query positions, evenly spaced within L, except those with too few keys after the sinks."""
    positions = np.unique(((np.arange(count) + 0.5) * length / count).astype(np.int64))
    return positions[positions >= max(sinks, FIRST)]


def scores(edges: np.ndarray, texts_found: list[dict]) -> dict:
    """The scored part of a record: shares as means over texts, and the distances at quantiles of attention."""
    layers, quarters, first = (
        np.mean([found[name] for found in texts_found], axis=0) for name in ("layers", "quarters", "first_keys")
    )
    mass = layers.mean(axis=0)
    return {
        "distances": edges.tolist(),
        "mass": mass.tolist(),
        "quantiles": {f"{share:g}": quantile(edges, mass, share) for share in QUANTILES},
        "layers": layers.tolist(),
        "quarters": quarters.tolist(),
        "first_keys": first.tolist(),
    }


def quantile(edges: np.ndarray, mass: np.ndarray, share: float) -> float:
    """The distance within which a share of attention lies, interpolated between the edges of bins."""
    up_to = np.concatenate([[0.0], np.cumsum(mass)])
    return float(np.interp(share * up_to[-1], up_to, edges))


if __name__ == "__main__":
    cli.run(main)
