"""What to measure at a scale: steps, each an experiment with its options, and the suite that they form."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

Options = Mapping[str, object]


class Data(enum.Enum):
    """What a step reads. The options of experiments.rerun say where that is, so a suite names no paths."""

    BOOKS = "texts to score: those of --books, else the first packaged ones"
    BENCHMARKS = "a benchmark's items: those of --benchmarks if it has them, else the hub's"
    BENCHMARKS_GIVEN = "a benchmark's items from --benchmarks only; without them the step is left out"
    MINIATURE = "the generated benchmark of the experiment's name"
    CORPUS = "texts to train on: those of --corpus, else the scale's"


@dataclass(frozen=True)
class Step:
    """One experiment and how it is called.

    Attributes:
        experiment: the script's name under experiments/.
        options: its command-line options; True stands for a flag, a tuple for several values.
        quick: the options that differ under --quick; None leaves the step out then.
        data: what it reads.
    """

    experiment: str
    options: Options = field(default_factory=dict)
    quick: Options | None = field(default_factory=dict)
    data: Data | None = None

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
    """The paper's own method at several values of one option, one model each, at the first factor.

    Attributes:
        option, values: the option and its values.
        experiments: which of the suite's evaluations are run.
        trained: whether each model is fine-tuned first.
        fixed: other options that all the models share.
    """

    option: str
    values: tuple
    experiments: tuple[str, ...] = ("longbench_e", "open_llm")
    trained: bool = True
    fixed: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Temperature:
    """The rival without its attention temperature, and the paper's own method with it (Scale.temperature_swapped).

    Attributes:
        experiments: which of the suite's evaluations are run.
        trained: the scaling factors at which both are also fine-tuned, with the suite's seeds.
    """

    experiments: tuple[str, ...]
    trained: tuple[int, ...] = ()


@dataclass(frozen=True)
class Trained:
    """Methods that are not in the paper's tables, fine-tuned in the same way at the first factor.

    Attributes:
        methods: their names.
        experiments: which of the suite's evaluations are run.
        seeds: how many fine-tunes each method gets.
    """

    methods: tuple[str, ...]
    experiments: tuple[str, ...]
    seeds: int = 1


@dataclass(frozen=True)
class Learned:
    """Factors λ_i that are learned from the model itself: see experiments/beyond/learned.py.

    Attributes:
        step: the step that learns them.
        starts: the methods whose factors they start from.
        seeds: how many runs from each start.
        experiments: which of the suite's evaluations are run with the learned factors.
        factors: the scaling factors at which factors are learned; None for the suite's.
    """

    step: Step
    starts: tuple[str, ...]
    seeds: int
    experiments: tuple[str, ...] = ("loss_by_position",)
    factors: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Suite:
    """What experiments/rerun.py measures at a scale.

    Attributes:
        evaluations: run on every model: each method untrained, and each fine-tune.
        alone: experiments that choose their methods themselves; each runs once.
        factors: the scale's scaling factors that are measured; None for all.
        further: extra scaling factors, each with the steps that are run on every untrained method.
        books: how many packaged books are scored if no others are given; under --quick, one.
        miniature: the step that writes the generated benchmarks; None if there are none.
        seeds: how many fine-tunes each compared method gets; with 0 everything is measured untrained.
        training: the step that fine-tunes.
        timing: the step that measures what each method costs, after the fine-tunes; None for no timing.
        ablations: the ablations, each over one option.
        temperature: the runs with exchanged attention temperatures; None for none.
        newer: methods published since the paper's rivals that are fine-tuned too; None for none.
        learned: how factors are learned; None if they are not.
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

    @property
    def names(self) -> list[str]:
        """The names of the experiments that evaluate, each once."""
        steps = [*self.evaluations, *self.alone, *(step for own in self.further.values() for step in own)]
        steps += [self.learned.step] if self.learned else []
        return list(dict.fromkeys(step.experiment for step in steps))
