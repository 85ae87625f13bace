"""What a suite's loops yield: chains of commands, each of which makes one model and measures it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

import records
from core import rope
from core.errors import InputError
from core.setting import Choice, Setting, flags
from experiments import suites
from experiments.base_models.model import BaseModel

# The experiments that read what a user gives to experiments.rerun, and the options that name it.
READS = {
    "perplexity": ("texts", "books_of"),
    "loss_by_position": ("texts", "books_of"),
    "needles": ("texts", "books_of"),
    "open_llm": ("benchmarks",),
    "longbench_e": ("benchmarks",),
    "finetune": ("corpus",),
    "learned": ("corpus",),
}
INTERVALS = 90, 180, 360, 720  # b in the paper's Tables 6 and 7
N_HATS = 96, 88, 80, 72, 64, 56  # n̂ for d = 128 in Tables 4 and 5
FITTING = "passkey", "ruler"  # of one's own model, they leave out what does not fit


@dataclass
class Chain:
    """Commands that run one after the other: they make a model and measure it.

    Attributes:
        name: the name of the log, and the beginning of the records' names if they belong to one
            run.
        commands: the words of each: a module and its arguments.
        needs: the checkpoint of another chain that it reads; empty if none.
        scored: the name of the run that it measures, where that is not its own; else empty.
    """

    name: str
    commands: list[list[str]]
    needs: str = ""
    scored: str = ""


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
        given: what the user gives to read, by the option's name; a folder of benchmarks holds one
            folder for each, named after its experiment.
        methods: measure only these methods, and leave out experiments that choose their methods
            themselves.
        replace: records of the same name with other settings are replaced.
    """

    name: str
    model: BaseModel
    output: Path
    results: Path
    quick: bool = False
    own_checkpoint: str | None = None
    given: Mapping = field(default_factory=dict)
    methods: Collection[str] | None = None
    replace: bool = False

    def seeds(self, count: int) -> range:
        """The seeds of `count` fine-tunes; under --quick, of one."""
        return range(1 if self.quick else count)

    @property
    def states(self) -> str:
        """The name of the suite that states what is measured: the base model's, or OWN."""
        return suites.OWN if self.own_checkpoint else self.name

    @property
    def stated(self) -> ModuleType:
        """The file that states what the paper's part measures."""
        return suites.find(self.states)[0]

    @property
    def new(self) -> list[Choice]:
        """Those of `methods` that the suite does not fine-tune, and of which results/ has no record
        of this model; they are measured as the suite's own are."""
        if not self.methods or self.own_checkpoint:
            return [(method, {}) for method in self.methods or ()]
        known = {rope.ORIGINAL, *_fine_tuned(self.name, self.model)}
        return [
            (method, {})
            for method in self.methods
            if method not in known and not records.has(records.RESULTS, self.name, method)
        ]

    def once(self, experiment: str, **options) -> Chain:
        """The chain of an experiment that chooses its methods itself.

        Args:
            options: options of it, `factor` among them; `weights` is the checkpoint of another
                chain, after which it runs.
        """
        measured = {"model": self._base, **options}
        commands = self._measuring([experiment], measured, None, options["factor"])
        return Chain(experiment, commands, needs=options.get("weights", ""))

    def untrained(self, setting: Choice, factor: float, experiments: Iterable[str]) -> Chain:
        """The chain that measures the base model with this setting, without training; empty of a
        method that needs training.

        Args:
            setting: a method and its options.
            factor: the scaling factor s.
            experiments: what measures it.
        """
        method, options = setting
        if rope.get(method).start and not options:
            return Chain(method, [])
        measured = {"model": self._base, "method": method, "factor": factor, **options}
        commands = self._measuring(experiments, measured, method, factor)
        return Chain(Setting.make(method, options, factor).run_name(), commands)

    def fine_tuned(
        self,
        setting: Choice,
        factor: float,
        seed: int,
        experiments: Iterable[str],
        **training: object,
    ) -> Chain:
        """The chain that fine-tunes the base model and measures the result; empty if nothing is
        measured.

        Args:
            training: further options of experiments.finetune.
        """
        method, options = setting
        output = self.checkpoint(setting, factor, seed)
        commands = self._measuring(experiments, {"model": output}, method, factor)
        if commands:
            run = {
                "model": self.name,
                "method": method,
                "factor": factor,
                **options,
                "seed": seed,
                "output": output,
                **training,
            }
            commands.insert(0, self._command("finetune", run, factor))
        return Chain(Path(output).name, commands)

    def checkpoint(self, setting: Choice, factor: float, seed: int) -> str:
        """Where the result of a fine-tune goes."""
        run = Setting.make(*setting, factor).run_name(seed)
        return str(self.output / "checkpoints" / run)

    def distinct(
        self,
        settings: Collection[Choice],
        factor: float,
        others: Iterable[Choice],
    ) -> list[Choice]:
        """Of settings of the same frequencies, the one to measure. A table of an ablation takes its
        records for the others too.

        Args:
            settings: the settings to measure.
            factor: the scaling factor s.
            others: settings that the suite measures anyway; one of equal frequencies is the one to
                measure. So an ablation trains no selection of pairs twice.
        """

        def frequencies(setting: Choice) -> str | None:
            method, options = setting
            what = records.of_method(self.model.geometry, method, factor, options)
            return what.get("scaling")  # of what learns, there are none yet

        first: dict[str | None, Choice] = {}
        for setting in (*others, *settings):
            first.setdefault(frequencies(setting), setting)
        return [first[each] for each in dict.fromkeys(map(frequencies, settings))]

    @property
    def _base(self) -> str:
        """The base model as --model names it."""
        return self.own_checkpoint or self.name

    def _measuring(
        self, experiments: Iterable[str], measured: Mapping, method: str | None, factor: float
    ) -> list[list[str]]:
        """The commands of the experiments that this suite asks for.

        Args:
            measured: the options that say what is measured.
            method: the method; None if the experiment chooses methods itself.
        """
        if self.methods is not None and method not in self.methods:
            return []
        return [self._command(each, measured, factor) for each in experiments if self._asks(each)]

    def _asks(self, experiment: str) -> bool:
        if self.quick and suites.quick(self.states, experiment) is None:
            return False
        if self.own_checkpoint and READS.get(experiment) == ("benchmarks",):
            return bool(self._data(experiment))
        return True

    def _command(self, experiment: str, more: Mapping, factor: float) -> list[str]:
        options = {**more, **self._stated(experiment, factor), **self._data(experiment)}
        if self.own_checkpoint and experiment in FITTING:
            options["fitting"] = True
        options["results"] = self.results
        if self.replace:
            options["replace"] = True
        return [records.program(experiment), *flags(options)]

    def _stated(self, experiment: str, factor: float) -> dict:
        """The options that a command states: none, unless they differ from those that its script,
        which knows one factor, takes from OPTIONS itself."""
        options = suites.defaults(self.states, self.model, experiment, factor)
        if self.quick:
            options |= suites.quick(self.states, experiment) or {}
        of_one_factor = replace(self.model, factors=(factor,))
        if options == suites.defaults(self.states, of_one_factor, experiment, factor):
            return {}
        return options

    def _data(self, experiment: str) -> dict:
        """What an experiment reads of what the user gives, by its option."""
        suite = suites.calling(self.states, experiment)
        if experiment in getattr(suite, "READS_ITS_OWN", ()):
            return {}
        data = {name: self.given[name] for name in READS.get(experiment, ()) if name in self.given}
        if "benchmarks" in data and not (data["benchmarks"] / experiment).is_dir():
            return {}
        return data


def n_hats(model: BaseModel) -> list[Choice]:
    """DPRoPE at the paper's n̂, as shares of the model's head dimension d."""
    pairs = model.geometry.pairs
    return [(rope.PROPOSED, {"n_hat": 2 * round(n_hat / 128 * pairs)}) for n_hat in N_HATS]


def intervals(**options) -> list[Choice]:
    """DPRoPE at the paper's b, with more options of the method."""
    return [(rope.PROPOSED, {**options, "intervals": b}) for b in INTERVALS]


def times(suite: Suite) -> Iterator[Chain]:
    """A part of several suites: the chain that times the methods.

    As it needs the checkpoint of CLEX, it runs last and alone: all methods meet the same idle
    machine.
    """
    methods = "pi", "yarn", "dprope", "clex"
    clex = suite.checkpoint(("clex", {}), 2, seed=0)
    yield suite.once("time_cost", factor=2, method=methods, weights=clex)


def chains_of(modules: list[ModuleType], suite: Suite, part: str | None = None) -> list[Chain]:
    """The chains of a suite, or of one part: the paper's, then those beyond it; those that need
    others come last.

    Raises:
        InputError: the suite has no such part, or nothing of these methods.
    """
    by_name: dict[str, list[Callable]] = {}  # those of one name stay together
    for listed in ("FIRST", "PARTS"):
        for module in modules:
            for function in getattr(module, listed, ()):
                by_name.setdefault(function.__name__, []).append(function)
    every = merged(
        chain
        for name, functions in by_name.items()
        if part in (None, name)
        for function in functions
        for chain in function(suite)
    )
    chains = sorted(every, key=lambda chain: chain.needs)
    if not chains:
        what = f"no part {part!r}" if part else "nothing of these methods"
        raise InputError(
            f"the suite of {suite.name!r} has {what}; see all of it with --list alone."
        )
    return chains


def merged(chains: Iterable[Chain]) -> list[Chain]:
    """One chain for each model, with the commands that several parts of a suite ask of it."""
    by_name: dict[str, Chain] = {}
    for chain in chains:
        if chain.commands:
            first = by_name.setdefault(chain.name, chain)
            first.commands += [each for each in chain.commands if each not in first.commands]
    return list(by_name.values())


def names(name: str, model: BaseModel) -> set[str]:
    """The names of all runs of a base model's suite."""
    return {run for chain in _chains(name, model) for run in (chain.name, chain.scored)}


def commands(name: str, model: BaseModel) -> list[list[str]]:
    """The commands of all runs of a base model's suite, each a module and its arguments."""
    return [command for chain in _chains(name, model) for command in chain.commands]


def _fine_tuned(name: str, model: BaseModel) -> set[str]:
    """The methods that a base model's suite fine-tunes with."""
    program = records.program("finetune")
    tuned = [command for command in commands(name, model) if command[0] == program]
    return {command[command.index("--method") + 1] for command in tuned}


def _chains(name: str, model: BaseModel) -> Iterator[Chain]:
    suite = Suite(name, model, records.RESULTS, records.RESULTS)
    for module in suites.find(name):
        for part in module.PARTS:
            yield from part(suite)
