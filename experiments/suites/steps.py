"""What a suite is written in: steps, and the chains of commands that a suite's loops yield."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core import rope
from experiments.base_models.model import Model
from experiments.kit import records
from experiments.suites.chains import Chain, Command, Setting

# What a step reads; the options of experiments.rerun say where that is, so a suite names no paths.
TEXTS = (
    "texts to score: those of --texts, else as many of a package as the step's option of "
    "PACKAGED says; quick: one"
)
BENCHMARK = (
    "a benchmark's items: those of --benchmarks if it has them, else the hub's; for one's own "
    "model, no others"
)
PACKAGED = "packaged", "parts", "plays"  # the options that count texts of packages
CORPUS = "texts to train on: those of --corpus, else the base model's"


@dataclass(frozen=True)
class Step:
    """One experiment and how it is called: see :func:`step`."""

    experiment: str
    options: Mapping
    quick: Mapping | None
    reads: str | None

    def at(self, model: Model, factor: float) -> dict:
        """Its options for a model and a scaling factor."""
        return {
            name: value(model, factor) if callable(value) else value
            for name, value in self.options.items()
        }


def step(
    experiment: str, *, reads: str | None = None, quick: Mapping | None = {}, **options
) -> Step:
    """One experiment with its options.

    Args:
        experiment: the script's name under experiments/ or experiments/beyond/.
        reads: what it reads: one of the names above.
        quick: the options that differ under --quick; None leaves the step out then.
        options: the script's options; True is a flag, a tuple is several values, a function (model,
            factor) gives one.
    """
    return Step(experiment, options, quick, reads)


def flags(options: Mapping) -> list[str]:
    """The words that state these options on a command line."""
    words = []
    for name, value in options.items():
        values = () if value is True else value if isinstance(value, tuple | list) else (value,)
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return words


@dataclass(frozen=True)
class Suite:
    """A base model and the options of experiments.rerun; its methods make the chains of a suite.

    Attributes:
        name: the base model's name, and that of its folder of records.
        model: what the base model is.
        output: the folder for checkpoints and logs.
        results: the folder for records.
        quick: run with few samples and one seed.
        own_checkpoint: a checkpoint of one's own, which is measured instead of a known base model.
        texts: the texts to score.
        benchmarks: a folder that holds one folder for each benchmark, named after its experiment.
        corpus: the data to train on.
        methods: measure only these methods, and leave out experiments that choose their methods
            themselves.
        replace: records of the same name with other settings are replaced.
    """

    name: str
    model: Model
    output: Path
    results: Path
    quick: bool = False
    own_checkpoint: str | None = None
    texts: tuple[Path, ...] = ()
    benchmarks: Path | None = None
    corpus: str | None = None
    methods: Collection[str] | None = None
    replace: bool = False

    def seeds(self, count: int) -> range:
        """The seeds of `count` fine-tunes; under --quick, of one."""
        return range(min(count, 1) if self.quick else count)

    def once(self, step: Step, **options) -> Chain:
        """The chain of an experiment that chooses its methods itself.

        Args:
            options: more options of it; `weights` is the checkpoint of another chain, after which
                it runs.
        """
        commands = self._commands(
            ["--model", self.own_checkpoint or self.name, *flags(options)], [step], None, 2
        )
        return Chain(step.experiment, commands, needs=options.get("weights", ""))

    def untrained(
        self, setting: Setting, factor: float, steps: Iterable[Step], same: Iterable[Setting] = ()
    ) -> Chain:
        """The chain that measures the base model with this setting, without training.

        Args:
            setting: a method and its options.
            factor: the scaling factor s.
            steps: the experiments.
            same: settings of the same frequencies, for which these experiments' records hold too.
        """
        method, options = setting
        steps = list(steps)
        model = [
            "--model",
            self.own_checkpoint or self.name,
            *flags({"method": method, "factor": factor, **options}),
        ]
        commands = self._commands(model, steps, method, factor)
        return Chain(records.run_name(method, factor, options), commands, _shared(steps, same))

    def fine_tuned(
        self,
        tune: Step,
        setting: Setting,
        factor: float,
        seed: int,
        steps: Iterable[Step],
        same: Iterable[Setting] = (),
    ) -> Chain:
        """The chain that fine-tunes the base model by `tune` and measures the result; empty if
        nothing is measured."""
        method, options = setting
        steps, rate = list(steps), self.model.training.other_rate(tune.options.get("learning_rate"))
        output = self.checkpoint(setting, factor, seed, rate)
        measured = self._commands(["--model", output], steps, method, factor)
        how = flags({"method": method, "factor": factor, **options, "seed": seed, "output": output})
        training = [self._command(tune, ["--model", self.name, *how], factor)] if measured else []
        return Chain(
            records.run_name(method, factor, options, seed, rate),
            training + measured,
            _shared(steps, same),
        )

    def checkpoint(
        self, setting: Setting, factor: float, seed: int, rate: float | None = None
    ) -> str:
        """Where the result of a fine-tune goes."""
        return str(
            self.output
            / "checkpoints"
            / records.run_name(setting[0], factor, setting[1], seed, rate)
        )

    def distinct(
        self, settings: Iterable[Setting], factor: float, others: Iterable[Setting]
    ) -> Iterator[tuple[Setting, list[Setting]]]:
        """Settings of the same frequencies once: the one to measure, and the others for which its
        records hold.

        Args:
            settings: the settings to measure.
            factor: the scaling factor s.
            others: settings that the suite measures anyway; one of equal frequencies is the one to
                measure.
        """
        others = [
            setting for setting in others if not rope.get(setting[0]).start
        ]  # what learns has no frequencies yet
        equal: dict[tuple, list[Setting]] = {}
        for setting in others:
            equal.setdefault(self._frequencies(setting, factor), [setting])
        chosen = {}
        for setting in settings:
            key = self._frequencies(setting, factor)
            group = chosen[key] = equal.setdefault(key, [setting])
            if setting not in [*group, *others]:
                group.append(setting)
        for first, *same in chosen.values():
            yield first, same

    def _commands(
        self, model: Command, steps: Iterable[Step], method: str | None, factor: float
    ) -> list[Command]:
        """The commands that measure a method, or methods that the experiment chooses itself, by
        these steps."""
        if self.methods is not None and method not in self.methods:
            return []
        steps = (step for step in steps if step.quick is not None or not self.quick)
        return [
            self._command(step, model, factor)
            for step in steps
            if step.reads != BENCHMARK or self.own_checkpoint is None or self._has_benchmark(step)
        ]

    def _command(self, step: Step, model: Command, factor: float) -> Command:
        where = ["--results", str(self.results), *(["--replace"] if self.replace else [])]
        return [
            records.program(step.experiment),
            *model,
            *flags(self._options(step, factor)),
            *where,
        ]

    def _options(self, step: Step, factor: float) -> dict:
        options = {**step.at(self.model, factor), **((self.quick and step.quick) or {})}
        if step.reads == TEXTS and self.texts:
            options = {name: value for name, value in options.items() if name not in PACKAGED}
            options = {"texts": self.texts[:1] if self.quick else self.texts, **options}
        elif step.reads == TEXTS and self.quick:
            options |= {name: 1 for name in PACKAGED if name in options}
        elif step.reads == BENCHMARK and self._has_benchmark(step):
            options = {"benchmarks": self.benchmarks, **options}
        elif step.reads == CORPUS and self.corpus:
            options = {"corpus": self.corpus, **options}
        return options

    def _has_benchmark(self, step: Step) -> bool:
        return self.benchmarks is not None and (self.benchmarks / step.experiment).is_dir()

    def _frequencies(self, setting: Setting, factor: float) -> tuple[bytes, float]:
        """What two settings that make the same model have in common."""
        scaling = rope.scale(self.model.geometry, setting[0], factor, **setting[1])
        return scaling.inv_freq.tobytes(), scaling.attention_factor


def _shared(steps: Iterable[Step], settings: Iterable[Setting]) -> list[tuple[str, Setting]]:
    return [(step.experiment, setting) for setting in settings for step in steps]


def merged(chains: Iterable[Chain]) -> list[Chain]:
    """One chain for each model, with the commands that several parts of a suite ask of it."""
    by_name: dict[str, Chain] = {}
    for chain in chains:
        if not chain.commands:
            continue
        first = by_name.setdefault(chain.name, chain)
        if first is not chain:
            first.same += chain.same
            first.commands += [
                command for command in chain.commands if command not in first.commands
            ]
    return list(by_name.values())
