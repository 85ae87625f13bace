"""What one command is given: the options of its command line, a model, and s. And where the record
of what it measures goes.

Every script that leaves a record has a class that is a command, and that says which options it has
and what it does. Nothing here says what is measured, or in what order.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import records
from core import files, rope
from core.errors import InputError
from eval import special_tokens
from experiments import base_models, suites
from experiments.base_models.model import BaseModel
from experiments.kit import command_line, processes
from experiments.suites import suite

if TYPE_CHECKING:
    from experiments.kit.model import Model

ALL = "for a base model, all that need no training; else the checkpoint as it is"
# Chosen for a suite's --lengths: other lengths leave them to the script.
OF_LENGTHS = {"stride", "tokens"}


class Command:
    """A command line that was read, and its model. A subclass states its name, its options, and
    what it does; its module's docstring is the script's text.

    Attributes:
        name: of the script and of its folder of records.
        unit: what a score is, in words; a run ends with it.
        divides: whether several processes divide its work.
        own_results: whether its records go to the folder of one's own models, of whatever model.
        arguments: the options, of which the model's suite gave those that were left open.
        model: the model.
        factor: s: that by which the checkpoint was extended, else that of --factor; 1 for a model
            that no method can extend.
        results: the folder of records.
    """

    name: ClassVar[str]
    unit: ClassVar[str] = ""
    divides: ClassVar[bool] = True
    own_results: ClassVar[bool] = False

    @staticmethod
    def add_arguments(parser: command_line.Parser) -> None:
        """Add its options, besides those of the model and of the records."""
        raise NotImplementedError

    def run(self) -> None:
        """Do it, unless it is recorded already."""
        raise NotImplementedError

    def rows(self, scores: dict) -> Iterable[tuple[str, ...]]:
        """What the script prints of a record: by default every mean, with its interval."""
        return command_line.rows(scores)

    # The command line.

    @classmethod
    def main(cls) -> None:
        """The script."""
        cls.read().run()

    @classmethod
    def read(cls) -> Self:
        """What the command line gives. What it leaves open is as the model's suite has it, if the
        model can be extended; --help prints that, and ends."""
        parser = cls.parser()
        arguments = parser.parse_args()
        if arguments.help:
            if known := base_models.MODELS.get(arguments.model):
                model = replace(known, factors=(arguments.factor,))
                parser.set_defaults(**suite_options(parser, cls.name, arguments.model, model))
            parser.print_help()
            sys.exit(0)
        if "method" in arguments:
            command_line.check_method(arguments)

        from experiments.kit.model import resolve  # with torch, which --help does without

        as_it_is = not getattr(arguments, "method", None)
        model = resolve(arguments.model, as_it_is, arguments.results)
        command = cls(arguments, model)
        if "factor" in parser.stated and model.extension and arguments.factor != command.factor:
            raise InputError(
                f"{model.name} was extended by s = {command.factor:g}; leave out --factor, or give "
                f"the model that it was made from."
            )
        if model.origin or model.extends:
            settings = model.settings(command.factor)
            name = model.folder if model.origin else suites.OWN
            vars(arguments).update(suite_options(parser, cls.name, name, settings))
        return command

    @classmethod
    def parser(cls) -> command_line.Parser:
        """The parser of the script's command line."""
        program = f"python -m {records.program(cls.name)}"
        text = sys.modules[cls.__module__].__doc__
        parser = command_line.parser(text, prog=program, add_help=False)
        parser.add_argument("-h", "--help", action="store_true", help="show this text and end")
        base_models.add_argument(parser)
        cls.add_arguments(parser)
        command_line.add_records_arguments(parser, cls.own_results)
        return parser

    def __init__(self, arguments: argparse.Namespace, model: Model) -> None:
        self.arguments = arguments
        self.model = model
        place = records.OWN if self.own_results else default_results(model)
        self.results = arguments.results or place
        if model.extension:
            self.factor = model.extension["factor"]
        else:
            self.factor = arguments.factor if model.extends else 1

    # What follows from it.

    def join(self) -> None:
        """Join the other processes, before a model is loaded; one on the hub must be readable."""
        if not self.divides and processes.count() > 1:
            raise InputError(
                f"{self.name} does its work in one process; start it without torchrun."
            )
        self.model.source.check_access()
        processes.join()

    @property
    def context_length(self) -> int:
        """L, in tokens."""
        return self.model.context_length

    @property
    def extended_length(self) -> int:
        """L' = s·L, in tokens."""
        return round(self.context_length * self.factor)

    @functools.cached_property
    def bos(self) -> list[int]:
        """The ids before a text that is scored: by --bos, else by the tokenizer."""
        return special_tokens.beginning(self.model.tokenizer, self.arguments.bos)

    def comparison(self) -> list[tuple[str | None, dict]]:
        """The (method, options) to run; a method of None means the checkpoint as it is."""
        if extension := self.model.extension:
            return [(extension["method"], extension["options"])]
        if self.arguments.method:
            settings = command_line.chosen_methods(self.arguments)
        elif self.model.base:
            settings = self.model.base.comparison(self.factor)
        else:
            return [(None, {})]
        for method, options in settings:  # refuse a wrong method or option before the long work
            rope.scale(self.model.geometry, method, self.factor, **options)
        return settings

    # Its records.

    def check_place(self, name: str) -> None:
        """Refuse the project's own records for a run of this name that is none of its suite."""
        if (
            self.results.resolve() == records.RESULTS
            and self.model.origin  # a model of one's own is refused as such
            and not self.in_suite(name)
        ):
            raise InputError(
                f"{self.results} holds what the model's suite measures, alone, and {name} is no "
                "part of it; give another --results, such as a copy of it."
            )

    def in_suite(self, name: str) -> bool:
        """Whether a run of this name is one of the base model's suite."""
        return name in suite.names(self.model.folder, self.model.origin)

    def check_model(self) -> None:
        """Refuse a folder that holds records of other models."""
        check_owner(self.results, self.model.folder)
        records.check_model(self.results, self.model.folder, self.model.facts(self.factor))

    def to_measure(self, run: dict, name: str) -> Path | None:
        """The file of a run's record; None, and a line that says so, if it is done.

        Raises:
            InputError: a record of another run, or of another model, is in its place.
        """
        file = records.path(self.results, self.model.folder, self.name, name)
        first = processes.is_first()
        if first:
            self.check_model()
        if not records.is_done(file, run, self.arguments.replace):
            return file
        if first:
            print(f"done already: {file}")
        return None

    def journals(self, identity: str) -> Path:
        """The path of a run's journals without the end of their names: beside the results, outside
        version control.

        The name includes hashes of the code that measures and of where the record goes. What other
        code measured is not used, and with --replace nothing is. Every process calls this.
        """
        results = self.results.resolve()
        folder = results.parent / "runs" / self.model.folder / self.name
        place = records.identity(results=str(results))
        path = folder / f"{identity}.{records.code_hash()}.{place}"
        if processes.is_first() and self.arguments.replace:
            for old in folder.glob(f"{path.name}.*.jsonl"):
                with files.lock(old):
                    old.unlink()
        processes.barrier()
        return path

    def finish(
        self,
        file: Path,
        run: dict,
        *,
        seconds: float,
        of_machine: dict,
        scores: dict,
        environment: dict | None = None,
        **parts: Any,
    ) -> None:
        """Write a record; print its scores, and then where it is.

        Args:
            seconds: how long it took.
            of_machine: what else its environment states.
            environment: where it was measured; by default here.
            parts: its other parts, see :mod:`records`.

        Raises:
            InputError: another command has recorded another run in its place meanwhile.
        """
        environment = (environment or records.environment(processes.count())) | of_machine
        environment["seconds"] = round(seconds, 1)
        with files.lock(file, wait=True):
            records.is_done(file, run, self.arguments.replace)
            records.state_model(self.results, self.model.folder, self.model.facts(self.factor))
            written = records.write(file, run, **parts, scores=scores, environment=environment)
        lines = command_line.aligned(self.rows(scores))
        if lines and self.unit:
            print(f"{self.unit}:")
        print(*lines, written, sep="\n")


def asked_by_suite(command: Command, *options: str) -> bool:
    """Whether the base model's suite calls the script of a command, and these options are the same
    then."""
    parser = command.parser()
    for program, *words in suite.commands(command.model.folder, command.model.origin):
        if program == records.program(command.name):
            asked = parser.parse_args(words)
            if all(getattr(asked, each) == getattr(command.arguments, each) for each in options):
                return True
    return False


def default_results(model: Model) -> Path:
    """Where a model's records go, if --results does not say it: those of a model or fine-tune of
    one's own are apart."""
    return records.RESULTS if model.base else records.OWN


def check_owner(results: Path, model: str) -> None:
    """Refuse the project's own records for a model of one's own.

    Args:
        model: the name of its folder of records.
    """
    if results.resolve() == records.RESULTS and model not in base_models.MODELS:
        raise InputError(
            f"{results} holds the records of the project's models, and {model!r} is none of them; "
            "give another --results."
        )


def suite_options(
    parser: command_line.Parser, experiment: str, name: str, model: BaseModel
) -> dict:
    """The options with which a model's suite calls an experiment, but for those that the command
    line states or decides.

    Args:
        parser: the experiment's, which has read the command line.
        name: the model's, or suites.OWN.
        model: with the one scaling factor of the command line.
    """
    decided = {"factor", "method", "fitting", *parser.stated}
    if "lengths" in decided:
        decided |= OF_LENGTHS
    lists = {action.dest for action in parser._actions if action.nargs == "+"}
    options = {}
    for option, value in suites.defaults(name, model, experiment, *model.factors).items():
        if option in lists:
            value = list(value) if isinstance(value, tuple) else [value]
        if option not in decided:
            options[option] = value
    return options
