"""What there is to measure of a scale: its suite (experiments/scales.py) as chains of command lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.rope import scale as rope_scale
from experiments import records
from experiments.scales import Scale, Suite

Command = list[str]
Setting = tuple[str, dict]  # a method and its options
BOOKS = 3  # of the registry's, where no others are given


@dataclass
class Chain:
    """Commands that follow each other: a model, and all that is measured of it.

    Attributes:
        name: of the log.
        commands: module and arguments of each.
        shared: records that also hold for another setting, as (record, the setting).
    """

    name: str
    commands: list[Command]
    shared: list[tuple[Path, Setting]] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """What there is to do for a scale."""

    scale: str
    preset: Scale
    output: Path
    results: Path
    quick: bool
    books: tuple[Path, ...] = ()
    benchmarks: Path | None = None
    corpus: str | None = None
    experiments: Collection[str] | None = None

    @property
    def suite(self) -> Suite:
        return self.preset.suite

    @property
    def evaluations(self) -> dict[str, str]:
        """The command line of each experiment, in full or with few samples."""
        return self.suite.quick if self.quick else self.suite.evaluations

    @property
    def factors(self) -> tuple[int, ...]:
        return self.suite.factors or self.preset.factors

    def data(self) -> list[Chain]:
        """The miniature benchmarks, where the suite has any."""
        if not self.suite.miniature:
            return []
        arguments = self.suite.miniature[self.quick].split()
        made = ["experiments.miniature", "--scale", self.scale, "--output", str(self.output / "miniature"), *arguments]
        return [Chain("miniature", [made])]

    def timing(self) -> list[Chain]:
        """What each method costs, measured with nothing beside it; CLEX with the weights that were trained before."""
        if not self.suite.seeds:
            return []
        factor = self.preset.factors[0]
        methods = dict.fromkeys(method for method, _ in self.preset.trained(factor))
        weights = self.output / "checkpoints" / f"{records.run_name('clex', factor, {})}_seed=0"
        command = ["experiments.time_cost", "--scale", self.scale, "--factor", str(factor), "--method", *methods]
        command += ["--weights", str(weights), *self._to()]
        size = self.suite.timing.split() + (["--repeats", "1"] if self.quick else [])
        return [Chain("time_cost", [command + size])]

    def chains(self, only: str | None = None) -> list[Chain]:
        """Each model once, in the part that measures most of it, which comes first."""
        parts = {
            "trained": self._trained,
            "untrained": self._untrained,
            "ablations": self._ablations,
            "temperature": self._temperature,
        }
        chains: dict[str, Chain] = {}
        for name, part in parts.items():
            for chain in part() if only in (None, name) else ():
                first = chains.setdefault(chain.name, chain)
                if first is not chain:
                    first.shared.extend(chain.shared)
        return [chain for chain in chains.values() if chain.commands]

    def _seeds(self) -> range:
        return range(min(self.suite.seeds, 1) if self.quick else self.suite.seeds)

    def _trained(self) -> Iterator[Chain]:
        for seed in self._seeds():
            for factor in self.factors:
                for setting in self.preset.trained(factor):
                    yield self._fine_tune(setting, factor, seed)

    def _ablations(self) -> Iterator[Chain]:
        """One chain for each selection of pairs, however many settings lead to it."""
        factor = self.factors[0]
        trained = self.suite.seeds and "ablations" in self.suite.trained
        known = self.preset.trained(factor) if trained else self.preset.comparison(factor)
        first: dict[bytes, Setting] = {}
        for setting in known:
            if setting[0].startswith("dprope"):
                first.setdefault(self._pairs(setting), setting)
        swept: dict[bytes, list[Setting]] = {}
        experiments: dict[bytes, dict[str, None]] = {}
        for option in ("n_hat", "intervals"):
            for value in getattr(self.suite, option):
                setting = ("dprope", {option: value})
                pairs = self._pairs(setting)
                first.setdefault(pairs, setting)
                swept.setdefault(pairs, []).append(setting)
                experiments[pairs] = experiments.get(pairs, {}) | dict.fromkeys(self.suite.ablated[option])
        for pairs, settings in swept.items():
            if trained:
                chain = self._fine_tune(first[pairs], factor, 0, experiments[pairs])
            else:
                chain = self._as_it_is(first[pairs], factor, experiments[pairs])
            others = [setting for setting in settings if setting not in (first[pairs], *known)]
            chain.shared += [(self._record(name, chain), other) for other in others for name in experiments[pairs]]
            if chain.shared or first[pairs] not in known:
                yield chain

    def _pairs(self, setting: Setting) -> bytes:
        """Which pairs a setting interpolates at the first factor."""
        return rope_scale(self.preset.geometry, setting[0], self.factors[0], **setting[1]).interpolated.tobytes()

    def _record(self, experiment: str, chain: Chain) -> Path:
        """Where an experiment writes what it measures of a chain's model."""
        texts = ""
        if experiment == "extension":
            texts = f"_books={len(self.books) or BOOKS}"
        elif experiment == "perplexity" and "--tokens" not in self.evaluations.get(experiment, ""):
            texts = "_whole"
        return records.path(self.results, self.scale, experiment, chain.name + texts)

    def _temperature(self) -> Iterator[Chain]:
        """The comparison's YaRN without its temperature and DPRoPE with it, as they are and fine-tuned."""
        for factor in self.factors if self.suite.sharpened else ():
            for setting in self.preset.sharpened(factor):
                for seed in self._seeds() if "temperature" in self.suite.trained else ():
                    yield self._fine_tune(setting, factor, seed, self.suite.sharpened)
                yield self._as_it_is(setting, factor, self.suite.sharpened)

    def _untrained(self) -> Iterator[Chain]:
        for factor in self.factors:
            for setting in self.preset.comparison(factor):
                yield self._as_it_is(setting, factor)
        for factor, lines in {} if self.quick else self.suite.farther.items():
            for setting in self.preset.comparison(factor):
                name = records.run_name(setting[0], factor, setting[1])
                yield Chain(name, self._lines(self._method(setting, factor), lines))
        once = {
            name: self.suite.quick.get(name, line) if self.quick else line for name, line in self.suite.once.items()
        }
        yield Chain("once", self._lines(["--scale", self.scale], once))

    def _as_it_is(self, setting: Setting, factor: int, only: Collection[str] | None = None) -> Chain:
        name = records.run_name(setting[0], factor, setting[1])
        return Chain(name, self._evaluate(self._method(setting, factor), only))

    def _fine_tune(self, setting: Setting, factor: int, seed: int, only: Collection[str] | None = None) -> Chain:
        name = records.run_name(setting[0], factor, setting[1]) + f"_seed={seed}"
        checkpoint = self.output / "checkpoints" / name
        train = ["experiments.finetune", *self._method(setting, factor), "--seed", str(seed)]
        train += [*self._given(self.suite.tuning), "--output", str(checkpoint), *self._to()]
        if self.quick:
            train += ["--steps", "2"]
        return Chain(name, [train, *self._evaluate(["--model", str(checkpoint)], only)])

    def _method(self, setting: Setting, factor: int) -> Command:
        options = [part for key, value in setting[1].items() for part in (f"--{key.replace('_', '-')}", str(value))]
        return ["--scale", self.scale, "--method", setting[0], "--factor", str(factor), *options]

    def _evaluate(self, model: Command, only: Collection[str] | None = None) -> list[Command]:
        lines = self.evaluations
        chosen = {name for name in lines if name not in self.suite.once and (only is None or name in only)}
        return self._lines(model, {name: line for name, line in lines.items() if name in chosen})

    def _lines(self, model: Command, lines: dict[str, str]) -> list[Command]:
        return [
            [f"experiments.{experiment}", *model, *self._given(line), *self._to()]
            for experiment, line in lines.items()
            if self.experiments is None or experiment in self.experiments
        ]

    def _given(self, line: str) -> list[str]:
        """The arguments of a line, with what its names in braces stand for."""
        miniature = self.output / "miniature"
        stands_for = {
            "{longbench_e}": [str(miniature / "longbench_e")],
            "{open_llm}": [str(miniature / "open_llm")],
            "{books}": ["--text", *map(str, self.books)] if self.books else ["--books", str(BOOKS)],
            "{benchmarks}": ["--data", str(self.benchmarks)] if self.benchmarks else [],
            "{corpus}": ["--data", self.corpus] if self.corpus else [],
        }
        return [part for word in line.split() for part in stands_for.get(word, [word])]

    def _to(self) -> Command:
        return ["--results", str(self.results)]
