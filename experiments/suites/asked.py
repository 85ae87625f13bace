"""What a suite asks of one experiment: the defaults of its command line."""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType

from core import files, rope
from experiments import suites
from experiments.base_models.model import Model
from experiments.kit import pool
from experiments.kit.given_model import GivenModel
from experiments.kit.pool import Chain, Setting
from experiments.kit.records import ROOT
from experiments.suites import measure
from experiments.suites.commands import Step, Suite

CHOSEN = "factor", "method", "from", "seed", "fitting"  # what a command line is to say itself
TEXTS = "books", "parts", "text"  # whoever chooses by one of them needs no other
OF_LENGTHS = "stride", "tokens"  # chosen for a suite's --lengths: other lengths leave them to the script


@dataclass(frozen=True)
class Asked(Suite):
    """A suite that makes no commands but notes its steps.

    Attributes:
        steps: each with the scaling factor at which it is asked for; None if that is the experiment's own.
    """

    steps: list[tuple[float | None, Step]] = field(default_factory=list)

    def once(self, step: Step) -> Chain:
        return self._noted(step.options.get("factor"), [step])

    def untrained(self, setting: Setting, factor: float, steps: Iterable[Step], same: Iterable[Setting] = ()) -> Chain:
        return self._noted(factor, steps)

    def fine_tuned(self, tune, setting, factor, seed, steps, same=()) -> Chain:
        return self._noted(factor, [tune, *steps])

    def distinct(
        self, settings: Iterable[Setting], factor: float, known: Iterable[Setting]
    ) -> Iterator[tuple[Setting, list[Setting]]]:
        return ((setting, []) for setting in settings)

    def step(self, modules: list[ModuleType], experiment: str, factor: float) -> Step | None:
        """What these modules ask of an experiment at this factor, or else at the first one; None if nothing.

        A fine-tune's length and steps follow the factor, so another factor's are nothing to it.
        """
        measure.alone(modules, self, "after")
        # Until it is found: not every part has to be gone through. A part may note a step and have no chain for it.
        for _ in itertools.chain([None], measure.of_parts(modules, self), [None]):
            steps = [(at, step) for at, step in self.steps if step.experiment == experiment]
            if found := [step for at, step in steps if at == factor]:
                return found[0]
        return steps[0][1] if steps and experiment != "finetune" else None

    def _noted(self, factor: float | None, steps: Iterable[Step]) -> Chain:
        self.steps.extend((factor, step) for step in steps)
        return Chain("", [])


def parsed(parser: argparse.ArgumentParser, experiment: str) -> argparse.Namespace:
    """The command line of an experiment; an option that it does not state is as the model's suite has it.

    --help shows what that is. Generated samples are written where `make rerun` has them, if they are not there yet.
    """
    words = [word for word in sys.argv[1:] if word not in ("-h", "--help")]
    given = parser.parse_known_args(words)[0]
    model = GivenModel(given.model, as_it_is=not getattr(given, "method", None))
    suite, options = _asked(model, experiment, model.applied["factor"] if model.applied else given.factor or 2)
    if getattr(given, "lengths", None):
        options = {name: value for name, value in options.items() if name not in OF_LENGTHS}
    if any(getattr(given, name, None) for name in TEXTS):
        options = {name: value for name, value in options.items() if name not in TEXTS}
    for action in parser._actions:
        if action.dest in options:
            value = options[action.dest]
            values = value if isinstance(value, tuple) else (value,)
            action.default = list(values) if action.nargs == "+" else value
            shown = "" if value is True else f": {' '.join(map(str, values))}"
            told = re.sub(r" \(default.*\)$", "", str(action.help))
            action.help = f"{told} (default{shown}, as in the suite of {model.folder})"
    given = parser.parse_args()
    if suite and "data" in options and given.data == options["data"] and not given.data.is_dir():
        with files.lock(suite.output, wait=True):  # of several processes, the first writes them
            if not given.data.is_dir():
                before = measure.alone(suites.find(suite.name), suite, "before")
                pool.run(before, pool.Machine((), 1), suite.output / "logs")
    return given


def _asked(given: GivenModel, experiment: str, factor: float) -> tuple[Suite | None, dict]:
    """The options that the suite of a model states for an experiment, at this factor if it has it, else at its first.

    A model whose suite does not have the experiment is asked what a model of one's own is.
    """
    place = ROOT / "build" / "rerun" / given.folder
    if not given.base and not given.extends:  # no lengths follow from L'
        return None, {}
    model = replace(given.base or Model(given.folder, given.name, given.geometry), factors=(factor,))
    for name in (given.folder, suites.OWN):
        suite = Asked(given.folder, model, place, place / "results")
        if step := suite.step(suites.find(name), experiment, factor):
            apart = {*CHOSEN, *rope.all_options()}
            return suite, {name: value for name, value in suite._options(step).items() if name not in apart}
    return suite, {}
