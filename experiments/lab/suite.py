"""What there is to measure of a scale: steps, each an experiment with its options, and the suite that they make."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

Options = Mapping[str, object]


class Data(enum.Enum):
    """What a step reads. Where it lies depends on the call of experiments.rerun, so that a suite names no place."""

    BOOKS = "texts to score: those of --books, else the registry's first ones"
    BENCHMARKS = "a benchmark's items: of --benchmarks where it has them, else the hub's"
    BENCHMARKS_GIVEN = "the same of --benchmarks alone: without them the step is left out"
    MINIATURE = "the generated benchmark of the experiment's name"
    CORPUS = "texts to train on: those of --corpus, else the scale's"


@dataclass(frozen=True)
class Step:
    """One experiment and how it is called.

    Attributes:
        experiment: the script's name under experiments/.
        options: its command-line options; True stands for a flag, a tuple for several values.
        quick: the options that differ under --quick; None leaves the step out there.
        data: what it reads.
        any_engine: whether it leaves a choice of what generates.
    """

    experiment: str
    options: Options = field(default_factory=dict)
    quick: Options | None = field(default_factory=dict)
    data: Data | None = None
    any_engine: bool = False

    def arguments(self, quick: bool = False) -> list[str]:
        """The options as a command line gives them."""
        return command_line({**self.options, **(self.quick or {})} if quick else self.options)


def command_line(options: Options) -> list[str]:
    """The arguments that state these options."""
    found = []
    for name, value in options.items():
        values = () if value is True else value if isinstance(value, tuple | list) else (value,)
        found += [f"--{name.replace('_', '-')}", *map(str, values)]
    return found


@dataclass(frozen=True)
class Ablation:
    """The paper's own method by the value of one option, at the first factor, one model each.

    Attributes:
        option, values: what is varied.
        experiments: those of the suite's evaluations that are run.
        trained: whether each model is fine-tuned first.
        fixed: options that all of them share.
    """

    option: str
    values: tuple
    experiments: tuple[str, ...] = ("longbench_e", "open_llm")
    trained: bool = True
    fixed: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Temperature:
    """The rival without its temperature and the paper's own method with it: see Scale.temperature_swapped.

    Attributes:
        experiments: those of the suite's evaluations that are run.
        trained: the scaling factors at which they are fine-tuned as well, with the suite's seeds.
    """

    experiments: tuple[str, ...]
    trained: tuple[int, ...] = ()


@dataclass(frozen=True)
class Trained:
    """Methods that the paper's tables do not have, fine-tuned like those that they have, at the first factor.

    Attributes:
        methods: their names.
        experiments: those of the suite's evaluations that are run.
        seeds: fine-tunes of each.
    """

    methods: tuple[str, ...]
    experiments: tuple[str, ...]
    seeds: int = 1


@dataclass(frozen=True)
class Learned:
    """The factors that the model itself asks for: see experiments/learned.py.

    Attributes:
        step: how they are learned.
        starts: the methods whose factors they start from.
        seeds: runs from each.
        experiments: those of the suite that are run with what was learned.
        factors: of the scale's, those at which it is done; None for the suite's.
    """

    step: Step
    starts: tuple[str, ...]
    seeds: int
    experiments: tuple[str, ...] = ("extension",)
    factors: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Suite:
    """What experiments/rerun.py measures of a scale.

    Attributes:
        evaluations: of every model: each method without training, and fine-tuned.
        alone: of experiments that go through methods of their own, once.
        factors: which of the scale's factors are measured; None for all.
        further: by further factors, what is measured there of each method without training.
        books: how many of the registry's are scored where no others are given; quickly, one.
        miniature: writes the generated benchmarks; None where there are none.
        seeds: fine-tunes of each method in the comparison; with none, all is measured without training.
        training: how they are made, where that is not as the scale says.
        timing: measures what each method costs, after the fine-tunes.
        ablations: over an option each.
        temperature: what is measured with temperatures exchanged; None for nothing.
        newer: methods published since the paper's rivals that are fine-tuned as well; None for none.
        learned: whether, and how, factors are learned; None for not at all.
        attention: measures how far attention looks, for the method that takes it; None for not at all.
    """

    evaluations: tuple[Step, ...] = ()
    alone: tuple[Step, ...] = ()
    factors: tuple[int, ...] | None = None
    further: Mapping[int, tuple[Step, ...]] = field(default_factory=dict)
    books: int = 3
    miniature: Step | None = None
    seeds: int = 0
    training: Step = Step("finetune", quick={"steps": 2}, data=Data.CORPUS)
    timing: Step | None = None
    ablations: tuple[Ablation, ...] = ()
    temperature: Temperature | None = None
    newer: Trained | None = None
    learned: Learned | None = None
    attention: Step | None = None

    @property
    def names(self) -> list[str]:
        """Of the experiments that evaluate, each once."""
        steps = [*self.evaluations, *self.alone, *(step for own in self.further.values() for step in own)]
        steps += [step for step in (self.learned and self.learned.step, self.attention) if step]
        return list(dict.fromkeys(step.experiment for step in steps))
