"""Learn the factors that the model itself asks for: what any choice of frequencies can reach without training weights.

    python -m experiments.learned --scale tiny --factor 2 --from yarn --seed 0
    python -m experiments.learned --model CHECKPOINT --data DIR --text BOOK.txt
    python -m experiments.extension --scale tiny --factor 2 --method factors --file RECORD

All weights are frozen. The d/2 factors λ_i = θ_i/θ̂_i and one attention factor start at those of a method that needs no
training, and Adam follows the loss on texts of L' = s·L tokens. The record is itself a file for `--method factors`.
Killed and given again, the same command goes on where it was, to the same result.

Every --evaluate-every steps the held-out loss is measured: on a few sequences from the second halves of texts that are
not trained on, of which evaluations score the beginning. It is flat once the least of the last 5 evaluations is not
more than 0.001 nat below the least of those before; then the learning converged. From there, or in time for the last
step of --steps, the learning rate falls to zero in a straight line, over as many steps as 5 evaluations are apart. What
the last step leaves is the result: no step is chosen by its loss.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from core import rope
from core.errors import InputError
from experiments.lab import cli, harness, learning, models, records, source, texts
from experiments.lab.journal import Journal
from experiments.lab.learning import Learning
from experiments.lab.positions import divisions
from experiments.lab.training.corpus import Corpus
from experiments.lab.training.packing import pack


def main() -> None:
    arguments = _parse()
    settings = Learning(**{field.name: getattr(arguments, field.name) for field in dataclasses.fields(Learning)})
    measured, factor, method = source.Source(arguments.scale, arguments.model), arguments.factor, arguments.method
    if not rope.get(method).ready:
        ready = ", ".join(name for name, known in rope.METHODS.items() if known.ready)
        raise InputError(f"the method {method!r} is nothing to start from without more; choose one of {ready}.")
    geometry = measured.geometry
    start = rope.scale(geometry, method, factor)
    length = arguments.length or round(geometry.context_length * factor)
    if length <= geometry.context_length:
        least = geometry.context_length + 1
        raise InputError(f"sequences of {length} tokens show nothing beyond L; give at least {least}.")
    divisions(geometry.context_length, length)  # refuses what cannot be divided into blocks

    models.check_access(measured.name)
    library = texts.files(arguments.text) if arguments.text else texts.books(arguments.books)
    corpus = Corpus(arguments.data)
    run = {
        "scale": measured.scale,
        "experiment": "learned",
        "method": method,
        "factor": factor,
        "options": {},
        "seed": arguments.seed,
        "length": length,
        "model": models.provenance(measured.name),
        "dtype": models.chosen_dtype(arguments.dtype, measured.name, measured.scale),
        "data": corpus.source if corpus.source == "books" else corpus.fingerprint,  # and not where it lies
        "held_out": {"texts": {book.title: book.sha256 for book in library}, "sequences": arguments.sequences},
        **settings.stated(),
    }
    run["identity"] = records.identity(**run)
    name = f"from={records.run_name(method, factor, {}, arguments.seed)}"
    file = records.path(arguments.results, measured.scale, "learned", name)
    if records.is_done(file, run, arguments.replace):
        print(f"done already: {file}")
        return
    records.check_scale(arguments.results, measured.scale, facts := measured.facts(factor))

    cache = arguments.results.resolve().parent / "runs" / "data"
    tokenizer = models.tokenizer(measured.name)
    data = pack(corpus, tokenizer, length, settings.batch, settings.steps, arguments.seed, cache)
    for book in data.facts["books"]:
        if book["sha256"] in run["held_out"]["texts"].values():
            raise InputError(f"{book['title']!r} is trained on; give another text to hold out.")
    held_out = learning.held_out(tokenizer, library, arguments.sequences, length)
    # What was begun is gone on with by the same code alone.
    place = harness.journal_place(file, "learned", records.identity(run=run["identity"], code=learning.code()))
    with Journal(place.with_name(f"{place.name}.0.jsonl")) as journal:
        model = harness.load(measured.name, run["dtype"]).model
        learner = learning.Learner(model, geometry, start, settings, journal, arguments.checkpointing)
        found = learner.learn(data, held_out, length)
    records.state_scale(arguments.results, measured.scale, facts)
    print(records.write(file, run | found | {"data_facts": data.facts}))


def _parse() -> argparse.Namespace:
    defaults = Learning()
    parser = cli.parser(__doc__, prog="python -m experiments.learned")
    source.add_arguments(parser, "tiny")
    parser.add_argument("--factor", type=cli.factor, default=2, metavar="S", help="scaling factor s = L'/L (default 2)")
    parser.add_argument(
        "--from", dest="method", default=rope.RIVAL, metavar="METHOD", help=f"where to start (default {rope.RIVAL})"
    )
    parser.add_argument("--seed", type=cli.seed, default=0, metavar="N", help="of the data's order (default 0)")
    parser.add_argument(
        "--data",
        default="books",
        metavar="DIR",
        help="of .txt or .parquet files to train on; or `hub` (PG19), or `books` (a package's, the default)",
    )
    group = parser.add_argument_group("settings")
    group.add_argument("--length", type=cli.count, metavar="TOKENS", help="of a sequence, above L (default L' = s·L)")
    group.add_argument(
        "--steps", type=cli.count, default=defaults.steps, metavar="N", help=f"at most (default {defaults.steps})"
    )
    group.add_argument(
        "--batch",
        type=cli.count,
        default=defaults.batch,
        metavar="N",
        help=f"sequences of a step (default {defaults.batch})",
    )
    group.add_argument(
        "--learning-rate",
        type=cli.number,
        default=defaults.learning_rate,
        metavar="RATE",
        help=f"radians that a step turns a pair by at distance L (default {defaults.learning_rate})",
    )
    group.add_argument(
        "--checkpointing",
        action=argparse.BooleanOptionalAction,
        help="recompute activations to save memory (default: where they would take more than 2 GB)",
    )
    cli.add_dtype_argument(group)
    group = parser.add_argument_group("held-out texts, which are not trained on")
    group.add_argument(
        "--books", type=cli.count, default=1, metavar="N", help=f"the first N of {texts.AVAILABLE} books (default 1)"
    )
    group.add_argument("--text", type=Path, nargs="+", metavar="FILE", help="these text files instead")
    group.add_argument(
        "--sequences", type=cli.count, default=4, metavar="N", help="from the second half of each (default 4)"
    )
    group.add_argument(
        "--evaluate-every",
        type=cli.count,
        default=defaults.evaluate_every,
        metavar="STEPS",
        help=f"between evaluations (default {defaults.evaluate_every})",
    )
    cli.add_records_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    cli.run(main)
