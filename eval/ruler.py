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
import importlib.util
import io
import random
import sys
import tempfile
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

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
        InputError: there are fewer questions than `count`.
    """
    generated = TASKS[task]
    encode = encode or (lambda prompt: tokenizer(prompt).input_ids)
    try:
        samples = _samples_within(length, task, tokenizer, count, seed, encode)
        budget = length
        while over := [s["index"] for s in samples if s["length"] + generated > length]:
            budget -= generated
            shorter = _samples_within(budget, task, tokenizer, count, seed, encode)
            for index in over:
                samples[index] = shorter[index]
        return samples
    except _TooShort:
        raise DoesNotFit(
            f"RULER's {task} does not fit in {length} tokens with this tokenizer, the "
            f"{generated} "
            "generated ones included; evaluate it at a greater length or leave the task out."
        ) from None


def _samples_within(
    budget: int, task: str, tokenizer, count: int, seed: int, encode: Encode
) -> list[dict]:
    """The samples that the script makes for a length of `budget` tokens; _TooShort if there
    are none."""
    rows = run_script(task, budget, TASKS[task], tokenizer, count, seed)
    # A script may run even if there is no room for what it asks about.
    if task not in QUESTIONS and not all(
        row["outputs"] and all(reference in row["input"] for reference in row["outputs"])
        for row in rows
    ):
        raise _TooShort
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
    constants = module("data.synthetic.constants").TASKS[recipes()[task]["task"]]
    cut = prompt.rindex(constants["answer_prefix"].partition("{")[0])
    return prompt[:cut], prompt[cut:]


def score(task: str, prediction: str, references: list[str]) -> float:
    """The package's metric for one sample, 0 … 1; it ignores case."""
    metrics = module("eval.synthetic.constants").TASKS[recipes()[task]["task"]]
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


# ---- the package's scripts


class _TooShort(BaseException):
    """No prompt of the task fits. It passes the scripts' handlers, which try again on an
    Exception."""


def run_script(
    recipe: str, length: int, generated: int, tokenizer, count: int, seed: int
) -> list[dict]:
    """Run the script of a recipe and return its rows, which hold "input" and "outputs" among other
    fields.

    Args:
        recipe: a key of :func:`recipes`.
        length: the tokens of prompt and answer together.
        generated: the tokens of the answer.
        tokenizer: a Hugging Face tokenizer.
        count: how many rows.
        seed: seeds the script's random generators.

    Raises:
        _TooShort: no prompt fits in `length` tokens.
        InputError: too many questions.
    """
    script_name = recipes()[recipe]["task"]
    options = recipes()[recipe]["args"]
    texts = module("data.synthetic.constants").TASKS[script_name]
    template = texts["template"] + texts["answer_prefix"]
    # It makes up length // 50 words and needs four of them.
    if script_name == "freq_words_extraction" and length < 200:
        raise _TooShort

    arguments = {
        "save_name": recipe,
        "tokenizer_path": "",
        "max_seq_length": length,
        "tokens_to_generate": generated,
        "num_samples": count,
        "random_seed": seed,
        "template": template,
        **options,
    }
    with tempfile.TemporaryDirectory() as directory, _process_state():
        script = _load(script_name, arguments | {"save_dir": directory})
        questions = getattr(script, "QAS", None)
        if questions is not None and count > len(questions):
            raise InputError(
                f"RULER's {recipe} has {len(questions)} questions; ask for no more than that."
            )
        script.TOKENIZER = SimpleNamespace(text_to_tokens=tokenizer.tokenize)
        return _rows(script)


def _rows(script: Any) -> list[dict]:
    """The rows that a script would have written to its file.

    A script makes a sample smaller and smaller until it fits, without end if none does.

    Raises:
        _TooShort: none does.
    """
    rows: list[dict] = []
    make = script.generate_input_output
    tries: int | None = None  # for a sample; None while the script looks for a size that fits

    def each(indices: Iterable[int]) -> Iterator[int]:
        """Replaces the script's progress bar, to know when a sample begins."""
        nonlocal tries
        for index in indices:
            tries = 0
            yield index
        tries = None

    def generate_input_output(*arguments, **options) -> tuple:
        """Replaces the script's function of this name, which makes a prompt of a given size and its
        references."""
        nonlocal tries
        if tries is not None:
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


_STAND_INS = ("constants", "tokenizer", f"{PACKAGE}.data.tokenizer")


def _load(name: str, arguments: dict) -> Any:
    """Execute a script's top level as if it had been started with these arguments.

    Its handlers catch every exception, even Ctrl-C, and try again; here they catch an Exception.
    """
    tokenizers: Any = ModuleType("tokenizer")
    tokenizers.select_tokenizer = lambda kind, path: None
    # Started as scripts, some import their neighbours as top-level modules.
    neighbours = (module("data.synthetic.constants"), tokenizers, tokenizers)
    sys.modules.update(zip(_STAND_INS, neighbours, strict=True))
    sys.argv = [name, *(f"--{option}={value}" for option, value in arguments.items())]

    file = folder() / "data/synthetic" / f"{name}.py"
    source = file.read_text(encoding="utf-8").replace("except:", "except Exception:")
    script: Any = ModuleType(f"ruler_{name}")
    script.__file__ = str(file)
    if name == "niah":
        _load_niah(source, script)
    else:
        exec(source, vars(script))
    return script


def _load_niah(source: str, script: Any) -> None:
    """Load the needle script without its list of six million words, which takes 9 seconds and 0.9
    GB."""
    from wonderwords import random_word

    _find_sentence_model()
    read = random_word._get_words_from_text_file
    random_word._get_words_from_text_file = lambda file: []
    try:
        exec(source, vars(script))
    finally:
        random_word._get_words_from_text_file = read
    script.words = _Words(read("adjectivelist.txt"), read("nounlist.txt"))
    # every sample splits the same essay
    script.sent_tokenize = lru_cache(maxsize=8)(script.sent_tokenize)


class _Words(Sequence):
    """All "adjective-noun" words, sorted and without repetition, each made only when it is
    needed."""

    def __init__(self, adjectives: Iterable[str], nouns: Iterable[str]):
        nouns = sorted(set(nouns))
        blocks: dict[str, list[str]] = {}  # words with the same start are adjacent in sorted order
        head = None
        for prefix in sorted({f"{adjective}-" for adjective in adjectives}):
            if head is None or not prefix.startswith(head):
                head = prefix
                blocks[head] = nouns
            else:  # "blue-eyed-" sorts among "blue-"
                tail = prefix.removeprefix(head)
                blocks[head] = sorted({*blocks[head], *(tail + noun for noun in nouns)})
        self._blocks = list(blocks.items())
        self._ends = list(accumulate(len(tails) for _, tails in self._blocks))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        block = bisect_right(self._ends, index)
        head, tails = self._blocks[block]
        return head + tails[index - self._ends[block]]  # counted back from the block's end


def _find_sentence_model() -> None:
    """Let NLTK find punkt_tab, its model of English sentences, in a package that carries the
    official copy."""
    import nltk

    spec = importlib.util.find_spec("llama_index")  # a namespace: none of the package's code runs
    for directory in (spec and spec.submodule_search_locations) or ():
        carried = str(Path(directory) / "core/_static/nltk_cache")
        if carried not in nltk.data.path:
            nltk.data.path.append(carried)


@cache
def recipes() -> dict[str, dict]:
    """The package's own list of tasks: by name, the script ("task") and its arguments ("args")."""
    import yaml

    return yaml.safe_load((folder() / "synthetic.yaml").read_text(encoding="utf-8"))


def folder() -> Path:
    """Where the package keeps scripts and data."""
    return Path(str(module("data").__file__)).parent.parent


def module(name: str) -> ModuleType:
    """A module of the package."""
    return importlib.import_module(f"{PACKAGE}.{name}")


@contextlib.contextmanager
def _process_state() -> Iterator[None]:
    """Restore what a script changes in this process: arguments, module search, the global random
    generators."""
    state, legacy_state = random.getstate(), np.random.get_state()
    argv, path = sys.argv, sys.path[:]
    modules = {name: sys.modules[name] for name in _STAND_INS if name in sys.modules}
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(legacy_state)
        sys.argv, sys.path[:] = argv, path
        for name in _STAND_INS:
            sys.modules.pop(name, None)
        sys.modules.update(modules)
