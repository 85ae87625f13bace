"""RULER (Hsieh et al., 2024): 13 synthetic long-context tasks, generated and scored by NVIDIA's own
package.

Prompts come from eval/ruler_scripts.py, which is not thread-safe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import DoesNotFit, InputError
from eval import ruler_scripts as scripts
from eval.intervals import accuracy_interval


@dataclass(frozen=True)
class Task:
    """A RULER task: the tokens to generate (greedily), and the metric.

    The metric "all" is the share of the references that the answer holds; "part" is whether it
    holds any of them.
    """

    name: str
    tokens_to_generate: int
    metric: str


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("niah_single_1", 128, "all"),
        Task("niah_single_2", 128, "all"),
        Task("niah_single_3", 128, "all"),
        Task("niah_multikey_1", 128, "all"),
        Task("niah_multikey_2", 128, "all"),
        Task("niah_multikey_3", 128, "all"),
        Task("niah_multivalue", 128, "all"),
        Task("niah_multiquery", 128, "all"),
        Task("vt", 30, "all"),
        Task("cwe", 120, "all"),
        Task("fwe", 50, "all"),
        Task("qa_1", 32, "part"),
        Task("qa_2", 32, "part"),
    )
}


Encode = Callable[[str], Sequence[int]]


def samples(
    task: str, length: int, tokenizer, count: int, seed: int = 42, encode: Encode | None = None
) -> list[dict]:
    """The first `count` samples of a task, as a base model sees them (no chat template).

    A seed always gives the same samples, and a larger count only appends to them. They are the
    package's own, except those that exceed the length. Samples exceed it because fwe leaves no room
    for the answer, vt re-letters its worked example after measuring it, and no script counts
    special tokens such as LLaMA2's <s>, which the model reads. Such a sample is replaced by the one
    of the same index that the script makes for a slightly shorter length.

    Args:
        task: a name in TASKS.
        length: the evaluation length in tokens, for the prompt and the generated tokens together.
        tokenizer: a Hugging Face tokenizer.
        count: how many samples; the question answering tasks have 5928 (qa_1) and 7405 (qa_2).
        seed: seeds the script's random generators; the benchmark uses 42.
        encode: the token ids that the model reads for a prompt; None for the tokenizer's own.

    Returns:
        one dict per sample: "index" (0 … count-1), "prompt" (ends with the answer's prefix),
            "references" (the
        strings to be found) and "length" (the prompt's tokens, special ones included; not the
        evaluation length).

    Raises:
        DoesNotFit: the length is too short for the task with this tokenizer.
        InputError: a package is missing, or there are fewer questions than `count`.
    """
    spec = TASKS[task]
    encode = encode or (lambda prompt: tokenizer(prompt).input_ids)
    try:
        samples = _samples_within(length, spec, tokenizer, count, seed, encode)
        budget = length
        while over := [
            s["index"] for s in samples if s["length"] + spec.tokens_to_generate > length
        ]:
            budget -= spec.tokens_to_generate
            shorter = _samples_within(budget, spec, tokenizer, count, seed, encode)
            for index in over:
                samples[index] = shorter[index]
        return samples
    except scripts.TooShort:
        raise DoesNotFit(
            f"RULER's {task} does not fit in {length} tokens with this tokenizer, the "
            f"{spec.tokens_to_generate} "
            "generated ones included; evaluate it at a greater length or leave the task out."
        ) from None
    except ModuleNotFoundError as error:
        raise InputError(
            f"RULER needs a package that is not installed ({error.name}); run `make env`."
        ) from error


def _samples_within(
    budget: int, task: Task, tokenizer, count: int, seed: int, encode: Encode
) -> list[dict]:
    """The samples that the script makes for a length of `budget` tokens; scripts.TooShort if there
    are none."""
    rows = scripts.generate(task.name, budget, task.tokens_to_generate, tokenizer, count, seed)
    # A script may run even if there is no room for what it asks about.
    if task.metric == "all" and not all(
        row["outputs"] and all(reference in row["input"] for reference in row["outputs"])
        for row in rows
    ):
        raise scripts.TooShort
    return [
        {
            # ours, because some versions of the needle script write the needle's place here
            "index": index,
            "prompt": row["input"],
            "references": list(row["outputs"]),
            "length": len(encode(row["input"])),
        }
        for index, row in enumerate(rows)
    ]


def parted(task: str, prompt: str) -> tuple[str, str]:
    """A prompt's question, and the beginning of the answer with which it ends."""
    constants = scripts.module("data.synthetic.constants").TASKS[scripts.recipes()[task]["task"]]
    cut = prompt.rindex(constants["answer_prefix"].partition("{")[0])
    return prompt[:cut], prompt[cut:]


def score(task: str, prediction: str, references: list[str]) -> float:
    """The package's metric for one sample, 0 … 1; it ignores case."""
    metrics = scripts.module("eval.synthetic.constants").TASKS[scripts.recipes()[task]["task"]]
    # The package turns control characters into line ends before it scores.
    printable = "".join(
        "\n" if character < " " else character for character in prediction.strip()
    ).strip()
    return metrics["metric_fn_per_sample"]([printable], [list(references)])[0] / 100


def aggregate(rows: Iterable[dict]) -> dict:
    """Scores of a run as the paper's RULER table shows them, in percent, with 95 % intervals.

    The intervals are Wilson's, because a bootstrap interval has no width for tasks that are always
    or never solved. One interval covers all samples although each task has a rate of its own; that
    makes it too wide, never too narrow.

    Args:
        rows: {"task", "length", "index", "score"} per sample: the evaluation length in tokens, the
            score 0 … 1.

    Returns:
        "tasks": {length: {task: {"mean", "low", "high", "n"}}};
        "lengths": {length: the mean over the tasks, with "tasks", their number};
        "average": the mean over the lengths ("Avg." of the paper).
        Lengths are strings, so that a record reads back from JSON as it was written.
    """
    order = {name: number for number, name in enumerate(TASKS)}
    # Sorted, so that the order in which samples finished does not matter.
    rows = sorted(rows, key=lambda row: (row["length"], order[row["task"]], row["index"]))
    scores: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        scores[row["length"]][row["task"]].append(row["score"])
    groups = {
        str(length): {name: np.array(of) for name, of in by_task.items()}
        for length, by_task in scores.items()
    }
    every = [list(by_task.values()) for by_task in groups.values()]
    return {
        "tasks": {
            length: {name: _percent([[group]]) for name, group in by_task.items()}
            for length, by_task in groups.items()
        },
        "lengths": {
            length: _percent([of]) | {"tasks": len(of)} for length, of in zip(groups, every)
        },
        "average": _percent(every),
    }


def _percent(scores: list[list[np.ndarray]]) -> dict:
    """The mean over lengths of the mean over tasks in percent, with its interval."""
    weights = [
        np.full(len(group), 1 / (len(scores) * len(groups) * len(group)))
        for groups in scores
        for group in groups
    ]
    values = np.concatenate([group for groups in scores for group in groups])
    interval = accuracy_interval(values, np.concatenate(weights))
    return {key: value if key == "n" else 100 * value for key, value in interval.items()}
