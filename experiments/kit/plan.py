"""A scale's suite (experiments/kit/suite.py) as chains of command lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core import rope
from experiments.kit import records
from experiments.kit.suite import Ablation, Data, Step, Suite, command_line

Command = list[str]
Setting = tuple[str, dict]  # a method and its options


@dataclass
class Chain:
    """Commands that run one after the other: they make a model and measure it.

    Attributes:
        name: the name of the log, and the beginning of the records' names if they belong to one run.
        commands: the module and the arguments of each command.
        twins: settings that give this same model, as (experiment, setting); its records hold for them too.
        trains: how many of the first commands train.
        method: the model's method, or None.
    """

    name: str
    commands: list[Command]
    twins: list[tuple[str, Setting]] = field(default_factory=list)
    trains: int = 0
    method: str | None = None


@dataclass(frozen=True)
class Plan:
    """The commands that a scale's suite needs, given the options of experiments.rerun.

    Attributes:
        scale: the scale's name.
        preset: the scale, with its suite.
        output: the folder for checkpoints, the miniature and logs.
        results: the folder for records.
        quick: run with few samples and one seed.
        model: a checkpoint to measure instead of the scale's own model.
        books: the texts to score.
        benchmarks: a folder that holds one folder per benchmark, named after its experiment.
        corpus: the data to train on.
        experiments: run only these experiments of the suite.
        methods: measure only these methods, and leave out experiments that choose their methods themselves.
        replace: records of the same name with other settings are replaced.
        brief: run one model of each kind: with a learned scaling or not, fine-tuned or not. A model that is not
            fine-tuned runs only its first evaluation.
    """

    scale: str
    preset: Scale
    output: Path
    results: Path
    quick: bool = False
    model: str | None = None
    books: tuple[Path, ...] = ()
    benchmarks: Path | None = None
    corpus: str | None = None
    experiments: Collection[str] | None = None
    methods: Collection[str] | None = None
    replace: bool = False
    brief: bool = False

    @property
    def suite(self) -> Suite:
        return self.preset.suite

    @property
    def factors(self) -> tuple[float, ...]:
        return self.suite.factors or self.preset.factors

    def miniature(self) -> list[Chain]:
        """The chain that writes the generated benchmarks, if the suite has any."""
        step = self.suite.miniature
        if not step:
            return []
        made = [*self._base(), "--output", str(self._miniature()), *step.arguments(self.quick)]
        return [Chain(step.experiment, [[f"experiments.{step.experiment}", *made]])]

    def timing(self) -> list[Chain]:
        """The chain that times every method and runs alone; a learned method uses the weights trained before."""
        step = self.suite.timing
        if not step or not self.suite.seeds:
            return []
        factor = self.factors[0]
        methods = dict.fromkeys(method for method, _ in self.preset.trained(factor))
        learned = [method for method in methods if rope.METHODS[method].start]
        for another in learned[1:]:  # a command line names the weights of one
            del methods[another]
        weights = [str(self._checkpoint(records.run_name(method, factor, {}, seed=0))) for method in learned[:1]]
        timed = {"factor": factor, "method": tuple(methods)} | ({"weights": weights[0]} if weights else {})
        return [Chain(step.experiment, [self._command(step, [*self._base(), *command_line(timed)])])]

    def alone(self) -> Chain:
        """The chain of experiments that choose their methods themselves."""
        return Chain("alone", self._commands(self._base(), self.suite.alone))

    def chains(self, only: str | None = None) -> list[Chain]:
        """One chain per model. A model in several parts is in the first of them, which measures most of it."""
        parts = {
            "trained": self._trained,
            "untrained": self._untrained,
            "ablations": self._ablations,
            "temperature": self._temperature,
            "learned": self._learned,
        }
        chains: dict[str, Chain] = {}
        kinds = set()
        for name, part in parts.items():
            for chain in part() if only in (None, name) else ():
                kind = chain.method and rope.get(chain.method).start is not None, chain.trains > 0
                if self.brief:
                    if kind in kinds or not chain.commands:
                        continue
                    kinds.add(kind)
                    if not chain.trains:
                        del chain.commands[1:]
                first = chains.setdefault(chain.name, chain)
                if first is not chain:
                    first.twins.extend(chain.twins)
                    first.commands.extend(command for command in chain.commands if command not in first.commands)
        return [chain for chain in chains.values() if chain.commands]

    def _seeds(self, count: int) -> range:
        return range(min(count, 1) if self.quick else count)

    def _trained(self) -> Iterator[Chain]:
        for seed in self._seeds(self.suite.seeds):
            for factor in self.factors:
                for setting in self.preset.trained(factor):
                    yield self._fine_tuned(setting, factor, seed, self.suite.evaluations)
        if newer := self.suite.newer:
            for seed in self._seeds(newer.seeds):
                for method in newer.methods:
                    yield self._fine_tuned((method, {}), self.factors[0], seed, self._steps(newer.experiments))

    def _untrained(self) -> Iterator[Chain]:
        for factor in self.factors:
            for setting in self.preset.comparison(factor):
                if self._is_compared(setting):
                    yield self._as_it_is(setting, factor, self.suite.evaluations)
        for factor, steps in self.suite.further.items():
            for setting in self.preset.comparison(factor):
                yield self._as_it_is(setting, factor, steps)
        if self.methods is None:
            yield self.alone()

    def _is_compared(self, setting: Setting) -> bool:
        """Whether a setting goes through the whole suite, not only through Suite.further."""
        method, options = setting
        compared = self.preset.compared
        return compared is None or (method in compared and options not in rope.METHODS[method].variants)

    def _ablations(self) -> Iterator[Chain]:
        for trained in (True, False):
            own = [ablation for ablation in self.suite.ablations if (self.suite.seeds and ablation.trained) == trained]
            yield from self._ablated(own, trained)

    def _ablated(self, ablations: list[Ablation], trained: bool) -> Iterator[Chain]:
        """One chain per model, however many settings give it."""
        factor = self.factors[0]
        known = self.preset.trained(factor) if trained else self.preset.comparison(factor)
        first: dict[tuple, Setting] = {}  # by the frequencies that a setting leads to
        for setting in known:
            if not rope.METHODS[setting[0]].start:  # what is learned is no selection of pairs
                first.setdefault(self._frequencies(setting), setting)
        settings: dict[tuple, list[Setting]] = {}
        experiments: dict[tuple, dict[str, None]] = {}
        for ablation in ablations:
            for value in ablation.values:
                setting = (rope.OURS, {**ablation.fixed, ablation.option: value})
                frequencies = self._frequencies(setting)
                first.setdefault(frequencies, setting)
                settings.setdefault(frequencies, []).append(setting)
                experiments.setdefault(frequencies, {}).update(dict.fromkeys(ablation.experiments))
        for frequencies, own in settings.items():
            measured = first[frequencies]
            steps = self._steps(experiments[frequencies])
            if trained:
                chain = self._fine_tuned(measured, factor, 0, steps)
            else:
                chain = self._as_it_is(measured, factor, steps)
            others = [setting for setting in own if setting not in (measured, *known)]
            chain.twins += [(name, other) for other in others for name in experiments[frequencies]]
            if chain.twins or measured not in known:
                yield chain

    def _frequencies(self, setting: Setting) -> tuple[bytes, float]:
        """What identifies a model: its inverse frequencies at the first factor, and its attention factor."""
        scaling = rope.scale(self.preset.geometry, setting[0], self.factors[0], **setting[1])
        return scaling.inv_freq.tobytes(), scaling.attention_factor

    def _temperature(self) -> Iterator[Chain]:
        temperature = self.suite.temperature
        for factor in self.factors if temperature else ():
            steps = self._steps(temperature.experiments)
            for setting in self.preset.temperature_swapped(factor):
                for seed in self._seeds(self.suite.seeds) if factor in temperature.trained else ():
                    yield self._fine_tuned(setting, factor, seed, steps)
                yield self._as_it_is(setting, factor, steps)

    def _learned(self) -> Iterator[Chain]:
        """The chains that learn factors, one per start and seed, and evaluate with them."""
        learned = self.suite.learned
        if not learned or self.methods is not None:
            return
        for factor in learned.factors or self.factors:
            for method in learned.starts:
                for seed in self._seeds(learned.seeds):
                    name = f"from={records.run_name(method, factor, {}, seed)}"
                    how = [*self._base(), *command_line({"from": method, "factor": factor, "seed": seed})]
                    record = records.path(self.results, self.scale, learned.step.experiment, name)
                    setting = (rope.GIVEN, {"file": str(record)})
                    measured = self._commands(self._method(setting, factor), self._steps(learned.experiments, factor))
                    if made := self._commands(how, [learned.step]):
                        yield Chain(name, [*made, *measured], trains=len(made))

    def _steps(self, experiments: Collection[str], factor: float | None = None) -> list[Step]:
        """The suite's evaluations of these names; with a factor, also those of Suite.further."""
        steps = {step.experiment: step for step in (*self.suite.further.get(factor, ()), *self.suite.evaluations)}
        return [step for name, step in steps.items() if name in experiments]

    def _as_it_is(self, setting: Setting, factor: float, steps: Iterable[Step]) -> Chain:
        name = records.run_name(setting[0], factor, setting[1])
        commands = self._commands(self._method(setting, factor), steps)
        return Chain(name, commands if self._is_asked(setting) else [], method=setting[0])

    def _fine_tuned(self, setting: Setting, factor: float, seed: int, steps: Iterable[Step]) -> Chain:
        """A fine-tune and its evaluations; no commands if there are no evaluations."""
        name = records.run_name(setting[0], factor, setting[1], seed)
        checkpoint = str(self._checkpoint(name))
        how = [*self._method(setting, factor), *command_line({"seed": seed, "output": checkpoint})]
        measured = self._commands(["--model", checkpoint], steps) if self._is_asked(setting) else []
        commands = [self._command(self.suite.training, how), *measured] if measured else []
        return Chain(name, commands, trains=len(commands) - len(measured), method=setting[0])

    def _is_asked(self, setting: Setting) -> bool:
        return self.methods is None or setting[0] in self.methods

    def _checkpoint(self, run_name: str) -> Path:
        return self.output / "checkpoints" / run_name

    def _miniature(self) -> Path:
        return self.output / "miniature"

    def _base(self) -> Command:
        return ["--model", self.model] if self.model else ["--model", self.scale]

    def _method(self, setting: Setting, factor: float) -> Command:
        return [*self._base(), *command_line({"method": setting[0], "factor": factor, **setting[1]})]

    def _commands(self, model: Command, steps: Iterable[Step]) -> list[Command]:
        return [self._command(step, model) for step in steps if self._is_wanted(step)]

    def _is_wanted(self, step: Step) -> bool:
        asked = self.experiments is None or step.experiment in self.experiments
        possible = step.data is not Data.BENCHMARKS_GIVEN or self._given_items(step) is not None
        return asked and possible and not (self.quick and step.quick is None)

    def _command(self, step: Step, model: Command) -> Command:
        records = ["--results", str(self.results), *(["--replace"] if self.replace else [])]
        arguments = [*self._data(step), *step.arguments(self.quick), *records]
        return [f"experiments.{step.experiment}", *model, *arguments]

    def _data(self, step: Step) -> list[str]:
        """The arguments that say where a step's data are."""
        match step.data:
            case Data.BOOKS if self.books:
                return ["--text", *map(str, self.books[:1] if self.quick else self.books)]
            case Data.BOOKS:
                return ["--books", str(1 if self.quick else self.suite.books)]
            case Data.MINIATURE:
                return ["--data", str(self._miniature() / step.experiment)]
            case Data.BENCHMARKS | Data.BENCHMARKS_GIVEN if items := self._given_items(step):
                return ["--data", str(items)]
            case Data.CORPUS if self.corpus:
                return ["--data", self.corpus]
        return []

    def _given_items(self, step: Step) -> Path | None:
        """A benchmark's folder, if one was given."""
        folder = self.benchmarks / step.experiment if self.benchmarks else None
        return folder if folder and folder.is_dir() else None
