"""RULER (Hsieh et al., 2024): 13 synthetic long-context tasks, generated and scored by NVIDIA's own
package.

The package `nvidia-long-context-eval` carries generators, data and metrics. Its generators are
scripts that are meant to be started once per task, and each loads a tokenizer and six million
words. Here they run in this process, with the caller's tokenizer, and give the same samples
(tests/eval/test_ruler.py compares them with the package's own entry point). Nothing is downloaded
and no file is left behind.

Not thread-safe: a script uses sys.argv and the global random generators, which are restored
afterwards.
"""

import contextlib
import importlib
import io
import math
import random
import re
import sys
import tempfile
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import accumulate
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from core.errors import DoesNotFit, InputError
from eval.intervals import accuracy_interval

PACKAGE = "long_context_eval"
# a script shrinks a prompt until it fits, endlessly if none does; this is far more than it ever
# needs
TRIES = 200


# The tokens that each task generates, greedily.
TASKS = {
    "niah_single_1": 128,
    "niah_single_2": 128,
    "niah_single_3": 128,
    "niah_multikey_1": 128,
    "niah_multikey_2": 128,
    "niah_multikey_3": 128,
    "niah_multivalue": 128,
    "niah_multiquery": 128,
    "vt": 30,
    "cwe": 120,
    "fwe": 50,
    "qa_1": 32,
    "qa_2": 32,
}
# These ask for any of the references. The score of all others is the share of the references that
# the answer holds.
QUESTIONS = ("qa_1", "qa_2")


def samples(
    task: str,
    length: int,
    tokenizer,
    count: int,
    seed: int,
    encode: Callable[[str], Sequence[int]],
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
        encode: from a prompt to the token ids that the model reads, such as a tokenizer's own.

    Returns:
        one dict per sample: "index" (0 … count-1), "prompt" (ends with the answer's prefix),
            "references" (the
        strings to be found) and "length" (the prompt's tokens, special ones included; not the
        evaluation length).

    Raises:
        DoesNotFit: the length is too short for the task with this tokenizer.
        InputError: there are fewer questions than `count`.
    """
    generated = TASKS[task]
    fitting: dict[int, dict] = {}
    budget = length
    try:
        while len(fitting) < count:
            # Numbered here, because some versions of the needle script write the needle's place
            # into the index.
            rows = run_script(task, length, tokenizer, count, seed, budget)
            for index, row in enumerate(rows):
                tokens = len(encode(row["input"]))
                if index not in fitting and tokens + generated <= length:
                    fitting[index] = {
                        "index": index,
                        "prompt": row["input"],
                        "references": row["outputs"],
                        "length": tokens,
                    }
            budget -= generated
    except _TooShort:
        raise DoesNotFit(
            f"RULER's {task} does not fit in {length} tokens with this tokenizer, the "
            f"{generated} "
            "generated ones included; evaluate it at a greater length or leave the task out."
        ) from None
    return [fitting[index] for index in range(count)]


def parted(task: str, prompt: str) -> tuple[str, str]:
    """A prompt's question, and the beginning of the answer with which it ends."""
    cut = prompt.rindex(_constants("data", task)["answer_prefix"].partition("{")[0])
    return prompt[:cut], prompt[cut:]


def score(task: str, prediction: str, references: list[str]) -> float:
    """The package's metric for one sample, 0 … 1; it ignores case."""
    metric = _constants("eval", task)["metric_fn_per_sample"]
    # The package turns control characters into line ends before it scores.
    printable = "".join(
        "\n" if character < " " else character for character in prediction.strip()
    ).strip()
    return metric([printable], [references])[0] / 100


def aggregate(values: dict[str, dict]) -> dict:
    """Scores of a run as the paper's RULER table shows them, in percent, with 95 % intervals.

    The intervals are Wilson's, because a bootstrap interval has no width for tasks that are always
    or never solved. One interval covers all samples although each task has a rate of its own; that
    makes it too wide, never too narrow.

    Args:
        values: {"score": 0 … 1} of each sample, by "LENGTH/TASK/INDEX"; the evaluation length in
            tokens.

    Returns:
        "tasks": {length: {task: {"mean", "low", "high", "n"}}};
        "lengths": {length: the mean over the tasks, with "tasks", their number};
        "average": the mean over the lengths ("Avg." of the paper).
        Lengths are strings, so that a record reads back from JSON as it was written.
    """
    order = list(TASKS)
    rows = []
    for key, value in values.items():
        length, task, index = key.split("/")
        rows.append((int(length), order.index(task), int(index), value["score"]))
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    # Sorted, so that the order in which samples finished does not matter.
    for tokens, number, _, score in sorted(rows):
        scores[str(tokens)][order[number]].append(score)
    every = {length: list(by_task.values()) for length, by_task in scores.items()}
    return {
        "tasks": {
            length: {name: _percent([[of_task]]) for name, of_task in by_task.items()}
            for length, by_task in scores.items()
        },
        "lengths": {length: _percent([of]) | {"tasks": len(of)} for length, of in every.items()},
        "average": _percent(list(every.values())),
    }


def _percent(scores: list[list[list[float]]]) -> dict:
    """The mean over lengths of the mean over tasks in percent, with its interval."""
    weights = [
        np.full(len(of_task), 1 / (len(scores) * len(tasks) * len(of_task)))
        for tasks in scores
        for of_task in tasks
    ]
    values = [of_task for tasks in scores for of_task in tasks]
    interval = accuracy_interval(np.concatenate(values), np.concatenate(weights))
    return {key: value if key == "n" else 100 * value for key, value in interval.items()}


# ---- the package's scripts


class _TooShort(BaseException):
    """No prompt of the task fits. It passes the scripts' handlers, which try again on an
    Exception."""


# What is changed in the text of a script, a pattern and what takes its place.
_CHANGES = (
    # Its handlers catch every exception, even Ctrl-C, and try again.
    ("except:", "except Exception:"),
    # Started as a script, some import their neighbours as top-level modules.
    ("^from constants", f"from {PACKAGE}.data.synthetic.constants"),
    # The tokenizer is the caller's.
    ("^(sys.path.append|from .*tokenizer import|TOKENIZER = ).*", ""),
    # The needle script's list of six million words takes 9 seconds and 0.9 GB.
    (r"^words = \[f.*\nwords = .*", "words = Words(adjs, nouns)"),
)


def run_script(task: str, length: int, tokenizer, count: int, seed: int, budget: int) -> list[dict]:
    """Run the script of a task and return its rows, which hold "input" and "outputs" among other
    fields.

    Args:
        task: a name in TASKS.
        length: the evaluation length, by which a script chooses how hard its samples are.
        tokenizer: a Hugging Face tokenizer.
        count: how many rows.
        seed: seeds the script's random generators.
        budget: the tokens of prompt and answer together.

    Raises:
        _TooShort: no prompt fits in so many tokens.
        InputError: too many questions.
    """
    name = recipes()[task]["task"]
    texts = _constants("data", task)
    # It makes up length // 50 words and needs four of them.
    if name == "freq_words_extraction" and budget < 200:
        raise _TooShort

    file = resources.files(PACKAGE) / f"data/synthetic/{name}.py"
    source = file.read_text(encoding="utf-8")
    for pattern, replacement in _CHANGES:
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    source = source.replace("args.max_seq_length < 4096", str(length < 4096))
    script: Any = ModuleType(f"ruler_{name}")
    script.__file__ = str(file)
    script.TOKENIZER = SimpleNamespace(text_to_tokens=tokenizer.tokenize)
    script.Words = _Words
    with tempfile.TemporaryDirectory() as directory, _random_state():
        arguments = {
            "save_dir": directory,
            "save_name": task,
            "tokenizer_path": "",
            "max_seq_length": budget,
            "tokens_to_generate": TASKS[task],
            "num_samples": count,
            "random_seed": seed,
            "template": texts["template"] + texts["answer_prefix"],
            **recipes()[task]["args"],
        }
        words = [name, *(f"--{option}={value}" for option, value in arguments.items())]
        with mock.patch.object(sys, "argv", words):
            exec(source, vars(script))
        if task in QUESTIONS and count > len(script.QAS):
            raise InputError(
                f"RULER's {task} has {len(script.QAS)} questions; ask for no more than that."
            )
        if name == "niah":
            _find_sentence_model()
            # every sample splits the same essay
            script.sent_tokenize = lru_cache(maxsize=8)(script.sent_tokenize)
        rows = _rows(script)
    # A script may run even if there is no room for what it asks about.
    if task not in QUESTIONS and not all(
        row["outputs"] and all(reference in row["input"] for reference in row["outputs"])
        for row in rows
    ):
        raise _TooShort
    return rows


def _rows(script: Any) -> list[dict]:
    """The rows that a script would have written to its file.

    A script makes a sample smaller and smaller until it fits, without end if none does.

    Raises:
        _TooShort: none does.
    """
    rows: list[dict] = []
    make = script.generate_input_output
    tries = -math.inf  # for a sample; without end while the script looks for a size that fits

    def each(indices: Iterable[int]) -> Iterator[int]:
        """Replaces the script's progress bar, to know when a sample begins."""
        nonlocal tries
        for index in indices:
            tries = 0
            yield index
        tries = -math.inf

    def generate_input_output(*arguments, **options) -> tuple:
        """Replaces the script's function of this name, which makes a prompt of a given size and its
        references."""
        nonlocal tries
        tries += 1
        # The size is the last argument (except in vt, which fails by itself). An essay needs at
        # least one word.
        if tries > TRIES or arguments[-1] < 1:
            raise _TooShort
        return make(*arguments, **options)

    script.generate_input_output = generate_input_output
    script.write_manifest = lambda file, written: rows.extend(written)
    script.tqdm = each
    with contextlib.redirect_stdout(io.StringIO()):
        script.main()
    return rows


class _Words:
    """All "adjective-noun" words, sorted and without repetition, each made only when it is
    needed."""

    def __init__(self, adjectives: Iterable[str], nouns: Iterable[str]):
        # by the start of a word, up to its first hyphen: "blue-eyed-" sorts among "blue-"
        starts: dict[str, frozenset[str]] = defaultdict(frozenset)
        for adjective in adjectives:
            head, hyphen, tail = f"{adjective}-".partition("-")
            starts[head + hyphen] |= {tail}

        @cache
        def rests(tails: frozenset[str]) -> list[str]:
            return sorted({tail + noun for tail in tails for noun in nouns})

        self._blocks = [(start, rests(tails)) for start, tails in sorted(starts.items())]
        self._ends = list(accumulate(len(rest) for _, rest in self._blocks))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> str:
        block = bisect_right(self._ends, index)
        start, rest = self._blocks[block]
        return start + rest[index - self._ends[block]]  # counted back from the block's end


@cache
def _find_sentence_model() -> None:
    """Let NLTK find punkt_tab, its model of English sentences, in a package that carries the
    official copy."""
    import nltk

    for packages in sys.path:
        nltk.data.path.append(f"{packages}/llama_index/core/_static/nltk_cache")


@cache
def recipes() -> dict[str, dict]:
    """The package's own list of tasks: by name, the script ("task") and its arguments ("args")."""
    import yaml

    return yaml.safe_load((resources.files(PACKAGE) / "synthetic.yaml").read_text(encoding="utf-8"))


def _constants(part: str, task: str) -> dict:
    """What the package says of a task's script: its texts ("data"), or its metric ("eval")."""
    module = importlib.import_module(f"{PACKAGE}.{part}.synthetic.constants")
    return module.TASKS[recipes()[task]["task"]]


@contextlib.contextmanager
def _random_state() -> Iterator[None]:
    """Restore the global random generators of this process."""
    state, legacy_state = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(legacy_state)
