"""Learn the best factors for a model: how far any choice of frequencies can get without training
the weights.

    python -m experiments.beyond.learned --model tiny --factor 2 --from yarn --seed 0
    python -m experiments.beyond.learned --model CHECKPOINT --corpus DIR --texts BOOK.txt
    python -m experiments.beyond.loss_by_position --model tiny --method factors --file RECORD

All weights are frozen. The d/2 factors λ_i = θ_i/θ̂_i and one attention factor start at those of a
method that needs no training, and Adam minimises the loss on texts of L' = s·L tokens. The record
can be given as --file to `--method factors`. If a run is killed, the same command resumes it and
gives the same result.

Every --evaluate-every steps the held-out loss is measured on a few sequences. They come from the
second halves of texts that are not trained on; evaluations score the beginnings. Learning has
converged once the held-out loss is flat: the best of the last 5 evaluations improves on all earlier
ones by at most 0.001 nat. Then the learning rate falls linearly to zero over 5 evaluations' worth
of steps. If the loss is not flat in time, the rate falls over the last steps of --steps. The result
is the state after the last step; no step is chosen by its loss.
"""

from __future__ import annotations

from collections.abc import Iterable

import records
from core import rope
from core.errors import InputError
from core.geometry import RopeScaling
from core.setting import Setting
from experiments.beyond.blocks import divisions
from experiments.kit import command_line, texts
from experiments.kit.command import Command, asked_by_suite
from experiments.kit.command_line import count, number, option, seed
from experiments.kit.engine import Engine
from records import journal


class Learned(Command):
    """Its steps depend on each other, and a line of the journal is a step."""

    name = "learned"
    divides = False

    @staticmethod
    def add_arguments(parser: command_line.Parser) -> None:
        command_line.add_factor_argument(parser)
        command_line.add_dtype_argument(parser)
        parser.add_argument(
            "--from",
            dest="start",
            default=rope.BASELINE,
            metavar="METHOD",
            help=f"start at the factors of this method (default {rope.BASELINE})",
        )
        option(parser, "--seed", seed, "N", "seed of the data's order", 0)
        data = (
            "learn from the .txt or .parquet files in DIR; or from `hub` (PG19) or `books`, "
            "the packaged books"
        )
        option(parser, "--corpus", texts.corpus, "DIR", data, "books")
        group = parser.add_argument_group("settings")
        option(group, "--steps", count, "N", "at most N steps", 200)
        option(group, "--batch", count, "N", "sequences per step", 1)
        turns = "how far a step turns a pair at distance L, in radians"
        option(group, "--learning-rate", number, "RATE", turns, 0.2)
        group = parser.add_argument_group("held-out texts, which are not trained on")
        texts.add_arguments(group, "hold out")
        option(group, "--sequences", count, "N", "sequences from the second half of each text", 4)
        option(group, "--evaluate-every", count, "STEPS", "steps between evaluations", 10)

    def run(self) -> None:
        # with torch, which --help does without
        from experiments.beyond import learning_loop
        from experiments.training import corpus

        self.join()
        given = self.arguments
        method = given.start
        settings = learning_loop.Learning(
            given.steps, given.batch, given.learning_rate, given.evaluate_every
        )
        start = self.start()
        if self.model.training:
            raise InputError(
                f"{self.model.name} is fine-tuned, and records of learned factors do not say so; "
                "give the model before that."
            )
        length = self.extended_length
        divisions(self.context_length, length)  # refuses a length that has no equal blocks
        library = texts.unread(self)
        engine = Engine(self)
        run = {
            "scale": self.model.folder,
            "experiment": self.name,
            "method": method,
            "factor": self.factor,
            "options": {},
            "seed": given.seed,
            "length": length,
            "model": self.model.identity,
            **records.of_method(self.model.geometry, method, self.factor, {}),
            "dtype": engine.dtype,
            "data": corpus.content(given.corpus),
            "held_out": {
                "texts": {book.title: book.sha256 for book in library},
                "sequences": given.sequences,
            },
            **settings.facts(),
            **texts.bos_for_record(self.bos),
        }
        name = f"from={Setting(method, (), self.factor).run_name(given.seed)}"
        self.check_place(name)
        file = self.to_measure(run, name)
        if file is None:
            return
        cache = self.results.resolve().parent / "runs" / "data"
        wanted = corpus.Wanted(
            given.corpus, length, settings.batch, settings.steps, given.seed, self.bos
        )
        data = corpus.pack(wanted, self.model.tokenizer, cache)
        for book in data.facts["books"]:
            if book["sha256"] in texts.hashes(library):
                raise InputError(
                    f"{book['title']!r} is in the training data; give another text to hold out."
                )
        held_out = learning_loop.held_out(
            self.model.tokenizer, library, given.sequences, length, self.bos
        )
        path = self.journals(records.identity(**run))
        with journal.opened(path.with_name(f"{path.name}.0.jsonl")) as lines:
            model = engine.extended(None, {})
            learner = learning_loop.Learner(model, self.model.geometry, start, settings, lines)
            result = learner.learn(data, held_out, length)
        seconds = result.pop("seconds")
        self.finish(
            file,
            run,
            scores=result,
            data_facts=data.facts,
            seconds=seconds,
            of_machine=engine.of_machine(),
        )

    def in_suite(self, name: str) -> bool:
        """From a method, at a factor and with a seed of the suite."""
        return asked_by_suite(self, "start", "factor", "seed")

    def start(self) -> RopeScaling:
        """The factors of the method of --from; InputError if it has none without training."""
        method = self.arguments.start
        if not rope.get(method).ready:
            ready = ", ".join(name for name, other in rope.METHODS.items() if other.ready)
            raise InputError(
                f"the method {method!r} needs training or options to start from; choose one of "
                f"{ready}."
            )
        return rope.scale(self.model.geometry, method, self.factor)

    def rows(self, scores: dict) -> Iterable[tuple[str, ...]]:
        """The losses of the held-out text at the end."""
        return command_line.rows(scores["curve"][-1])


main = Learned.main

if __name__ == "__main__":
    command_line.run(main)
