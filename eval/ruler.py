"""RULER (Hsieh et al., 2024): 13 synthetic long-context tasks, generated and scored by NVIDIA's own package.

The package `nvidia-long-context-eval` carries generators, data and metrics. Its generators are scripts, written to
be started once per task, each loading a tokenizer and six million words. Here they run unmodified inside this
process, with the tokenizer that the caller already has, and give the same samples (tests/eval/test_ruler.py
compares them with the package's own entry point). Nothing is downloaded and no file is left behind.

Not thread-safe: a script reads sys.argv and the global random generators, which are put back afterwards.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import random
import sys
import tempfile
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.machinery import ModuleSpec
from itertools import accumulate
from pathlib import Path
from types import ModuleType

import numpy as np

from core.errors import InputError
from eval.intervals import accuracy_interval

PACKAGE = "long_context_eval"
TRIES = 200  # a script shrinks a prompt until it fits, for ever if none does; by then far more than it ever needs


@dataclass(frozen=True)
class Task:
    """A RULER task: tokens to generate (greedily), kind of skill, and metric.

    The metric is "all", the share of the references found in the answer, or "part", whether any of them is.
    """

    name: str
    tokens_to_generate: int
    category: str
    metric: str


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("niah_single_1", 128, "retrieval", "all"),
        Task("niah_single_2", 128, "retrieval", "all"),
        Task("niah_single_3", 128, "retrieval", "all"),
        Task("niah_multikey_1", 128, "retrieval", "all"),
        Task("niah_multikey_2", 128, "retrieval", "all"),
        Task("niah_multikey_3", 128, "retrieval", "all"),
        Task("niah_multivalue", 128, "retrieval", "all"),
        Task("niah_multiquery", 128, "retrieval", "all"),
        Task("vt", 30, "multi-hop tracing", "all"),
        Task("cwe", 120, "aggregation", "all"),
        Task("fwe", 50, "aggregation", "all"),
        Task("qa_1", 32, "question answering", "part"),
        Task("qa_2", 32, "question answering", "part"),
    )
}


def samples(task: str, length: int, tokenizer, count: int, seed: int = 42) -> list[dict]:
    """The first `count` samples of a task, as a base model sees them (no chat template).

    A seed always gives the same samples, and a larger count only appends to them. They are the package's own,
    but for two of its scripts that can overshoot the length: fwe leaves no room for the answer, and vt re-letters
    its worked example after measuring it. A sample that overshoots is replaced by the one of the same index that
    the script makes for a slightly shorter length.

    Args:
        task: a name in TASKS.
        length: the evaluation length in tokens, for the prompt and the generated tokens together.
        tokenizer: a Hugging Face tokenizer, or the directory or hub name of one.
        count: how many samples; the question answering tasks have 5928 (qa_1) and 7405 (qa_2).
        seed: of the script's random generators; the benchmark uses 42.

    Returns:
        one dict per sample: "index" (0 … count-1), "prompt" (ends with the answer's prefix), "references" (the
        strings to be found) and "length" (the prompt's tokens, without special tokens; not the evaluation length).

    Raises:
        InputError: unknown task, a package that is missing, too many questions, or a length too short for the
            task with this tokenizer.
    """
    spec = _task(task)
    if count < 1:
        raise InputError(f"{count} samples were asked of RULER's {task}; ask for at least 1.")
    if isinstance(tokenizer, str | Path):
        from transformers import AutoTokenizer  # scoring and aggregation do without

        try:
            tokenizer = AutoTokenizer.from_pretrained(tokenizer)
        except (OSError, ValueError) as error:
            raise InputError(f"there is no tokenizer at {tokenizer}; give its directory or its hub name.") from error

    try:
        return _fill(spec, length, tokenizer, count, seed)
    except _TooShort as error:
        hint = _enough(error, length, lambda longer: _fill(spec, longer, tokenizer, count, seed))
        raise InputError(
            f"RULER's {task} does not fit in {length} tokens with this tokenizer, the {spec.tokens_to_generate} "
            f"generated ones included ({hint}); evaluate it at a greater length or leave the task out."
        ) from None


def score(task: str, prediction: str, references: list[str]) -> float:
    """The package's metric for one sample, 0 … 1; upper and lower case are the same."""
    _task(task)
    metrics = _package_module("eval.synthetic.constants").TASKS[_recipes()[task]["task"]]
    # Like the package, before it scores: control characters become line ends.
    printable = "".join("\n" if character < " " else character for character in prediction.strip()).strip()
    return metrics["metric_fn_per_sample"]([printable], [references])[0] / 100


def aggregate(rows: Iterable[dict]) -> dict:
    """Scores of a run as the paper's RULER table shows them, in percent, with 95 % intervals.

    They are Wilson's, as tasks that are always or never solved leave a bootstrap no width. All samples enter one
    interval though each task has a rate of its own: that makes it too wide rather than too narrow.

    Args:
        rows: {"task", "length", "index", "score"} per sample: the evaluation length in tokens, the score 0 … 1.

    Returns:
        "tasks": {length: {task: {"mean", "low", "high", "n"}}};
        "lengths": {length: the mean over the tasks, and "tasks", how many they are};
        "average": the mean over the lengths ("Avg." of the paper).
        Lengths are strings, so that a record reads back from JSON as it was written.

    Raises:
        InputError: no rows, an unknown task, or a sample that occurs twice.
    """
    scores: dict[int, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        of_task = scores[row["length"]][_task(row["task"]).name]
        if row["index"] in of_task:
            raise InputError(
                f"sample {row['index']} of {row['task']} at {row['length']} tokens was scored twice; "
                "give each sample once."
            )
        of_task[row["index"]] = row["score"]
    if not scores:
        raise InputError("there are no RULER scores to aggregate; evaluate at least one sample.")

    tasks: dict[str, dict] = {}
    lengths: dict[str, dict] = {}
    everything = []
    for length in sorted(scores):
        # In the order of TASKS and of the indices, so that the order in which samples finished does not matter.
        groups = {
            name: np.array([scores[length][name][index] for index in sorted(scores[length][name])])
            for name in TASKS
            if name in scores[length]
        }
        everything.append(list(groups.values()))
        tasks[str(length)] = {name: _percent([[group]]) for name, group in groups.items()}
        lengths[str(length)] = _percent(everything[-1:]) | {"tasks": len(groups)}
    return {"tasks": tasks, "lengths": lengths, "average": _percent(everything)}


def _percent(scores: list[list[np.ndarray]]) -> dict:
    """The mean over lengths of the mean over tasks in percent, with its interval."""
    weights = [
        np.full(len(group), 1 / (len(scores) * len(groups) * len(group))) for groups in scores for group in groups
    ]
    values = np.concatenate([group for groups in scores for group in groups])
    interval = accuracy_interval(values, np.concatenate(weights))
    return {key: value if key == "n" else 100 * value for key, value in interval.items()}


def _task(name: str) -> Task:
    if name not in TASKS:
        raise InputError(f"unknown RULER task {name!r}; choose from {', '.join(TASKS)}.")
    return TASKS[name]


# The package


class _TooShort(Exception):
    """No prompt of the task fits; `least` is how many tokens it would take at least, 0 where that is not known."""

    def __init__(self, least: int = 0):
        self.least = least


def _enough(error: _TooShort, length: int, fill: Callable[[int], object]) -> str:
    """What to tell about the length that a task takes, found by trying a few."""
    for _ in range(8):
        # One more than needed, as a prompt that fits exactly makes the scripts look for a larger one.
        length = max(error.least + 1, length + 32)
        try:
            fill(length)
        except _TooShort as again:
            error = again
        else:
            return f"{length} are enough for the samples asked for"
    return f"{length} are too few as well"


def _fill(task: Task, length: int, tokenizer, count: int, seed: int) -> list[dict]:
    """The samples of :func:`samples`, none of which exceeds the length; _TooShort if there are none."""

    def made_for(budget: int) -> list[dict]:
        return [
            {
                "index": index,  # ours: some versions of the needle script write the needle's place here
                "prompt": row["input"],
                "references": list(row["outputs"]),
                "length": len(tokenizer.tokenize(row["input"])),
            }
            for index, row in enumerate(_generate(task, budget, tokenizer, count, seed))
        ]

    rows, budget = made_for(length), length
    while over := [row["index"] for row in rows if row["length"] + task.tokens_to_generate > length]:
        budget -= task.tokens_to_generate
        shorter = made_for(budget)
        for index in over:
            rows[index] = shorter[index]
    return rows


def _generate(task: Task, length: int, tokenizer, count: int, seed: int) -> list[dict]:
    """Run a task's script: its rows, with "input" and "outputs" among other fields.

    Raises:
        _TooShort: no prompt fits in `length` tokens. InputError: a package is missing, or too many questions.
    """
    recipe = _recipes()[task.name]
    parts = _package_module("data.synthetic.constants").TASKS[recipe["task"]]
    template = parts["template"] + parts["answer_prefix"]
    least = len(tokenizer.tokenize(template)) + task.tokens_to_generate
    if recipe["task"] == "freq_words_extraction":  # it needs four words of the length // 50 that it makes up
        least = max(least, 200)
    if length < least:
        raise _TooShort(least)

    arguments = {
        "save_name": task.name,
        "tokenizer_path": "",
        "max_seq_length": length,
        "tokens_to_generate": task.tokens_to_generate,
        "num_samples": count,
        "random_seed": seed,
        "template": template,
        **recipe["args"],
    }
    supervisor = _Supervisor(tokenizer, length, task.tokens_to_generate)
    with tempfile.TemporaryDirectory() as directory, _process_state():
        script = _load(recipe["task"], arguments | {"save_dir": directory}, supervisor)
        questions = getattr(script, "QAS", None)
        if questions is not None and count > len(questions):
            raise InputError(f"RULER's {task.name} has {len(questions)} questions; ask for no more than that.")
        rows = supervisor.run(script)

    # A script may still run where there is no room left for what it will ask for.
    if task.metric == "all" and not all(
        row["outputs"] and all(x in row["input"] for x in row["outputs"]) for row in rows
    ):
        raise _TooShort()
    return rows


class _Supervisor:
    """Stands in for a script's tokenizer, and ends its retries where they lead nowhere.

    A script makes a sample again and again, and smaller, until it fits, and catches every exception on the way,
    Ctrl-C included. When that comes to no end, it is handed an empty text, which fits, and `stopped` says why.
    """

    def __init__(self, tokenizer, length: int, tokens_to_generate: int):
        self.tokenizer = tokenizer
        self.length = length
        self.tokens_to_generate = tokens_to_generate
        self.stopped: BaseException | None = None
        self.tries: int | None = None  # at the present sample; None while the script looks for a size that fits
        self.sizes: list[int] = []  # tokens of each prompt measured since then
        self.smallest = 0  # tokens of the first prompt of that search
        self.example = 0  # tokens of vt's worked example, which it measures apart from the prompt
        self.making = False  # the script's function, inside which fwe measures by itself
        self.made = False  # a prompt that was not measured yet

    def run(self, script: ModuleType) -> list[dict]:
        """The rows that the script would have written to its file."""
        rows: list[dict] = []
        self.make = script.generate_input_output
        script.generate_input_output = self.generate_input_output
        script.write_manifest = lambda file, written: rows.extend(written)
        script.tqdm = self.each
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                script.main()
            except Exception:
                if self.stopped is None:
                    raise
        if self.stopped is not None:
            raise self.stopped
        return rows

    def each(self, indices: Iterable[int]) -> Iterator[int]:
        """In place of the script's progress bar: notes where a sample begins."""
        self.smallest = self.sizes[0] if self.sizes else 0
        for index in indices:
            self.tries, self.sizes = 0, []
            yield index
        self.tries, self.sizes = None, []

    def generate_input_output(self, *arguments, **options) -> tuple:
        """In place of the script's function of this name, which makes a prompt of a size and its references."""
        if self.tries is not None:
            self.tries += 1
            if self.tries > TRIES and self.stopped is None:
                least = min(self.sizes, default=self.smallest) + self.example + self.tokens_to_generate
                self.stopped = _TooShort(least)
            if self.stopped is not None:
                return "", []
            # The size comes last, but for vt, which fails by itself: an essay of no words is a needle without hay.
            if arguments[-1] < 1:
                raise ValueError("nothing to hide the needle in")
        self.making = True
        try:
            return self.make(*arguments, **options)
        except KeyboardInterrupt as interrupt:
            if self.tries is None:
                raise
            self.stopped = interrupt
            return "", []
        finally:
            self.making, self.made = False, True

    def text_to_tokens(self, text: str) -> range:
        """In place of the package's tokenizer: the scripts only look at how many tokens there are."""
        try:
            size = len(self.tokenizer.tokenize(text))
        except BaseException as error:
            if self.tries is None:
                raise
            self.stopped, size = error, 0
        if self.making:
            return range(size)
        if self.made:
            self.sizes.append(size)
        else:
            self.example = size
            least = size + self.tokens_to_generate
            if least > self.length:  # then an empty prompt would not fit either
                raise _TooShort(least)
        self.made = False
        return range(size)


_STAND_INS = ("constants", "tokenizer", f"{PACKAGE}.data.tokenizer")


def _load(name: str, arguments: dict, supervisor: _Supervisor) -> ModuleType:
    """Execute a script's top level as if it had been started with these arguments."""
    tokenizers = ModuleType("tokenizer")
    tokenizers.select_tokenizer = lambda kind, path: supervisor
    # Started as scripts, some import their neighbours as top-level modules.
    neighbours = (_package_module("data.synthetic.constants"), tokenizers, tokenizers)
    sys.modules.update(zip(_STAND_INS, neighbours, strict=True))
    sys.argv = [name, *(f"--{option}={value}" for option, value in arguments.items())]

    spec = importlib.util.spec_from_file_location(f"ruler_{name}", _directory() / "data/synthetic" / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    try:
        if name == "niah":
            _load_niah(spec, script)
        else:
            spec.loader.exec_module(script)
    except ModuleNotFoundError as error:
        raise _missing(error.name) from error
    return script


def _load_niah(spec: ModuleSpec, script: ModuleType) -> None:
    """Load the needle script without its list of six million words, which takes 9 seconds and 0.9 GB."""
    from wonderwords import random_word

    _find_sentence_model()
    read = random_word._get_words_from_text_file
    random_word._get_words_from_text_file = lambda file: []
    try:
        spec.loader.exec_module(script)
    finally:
        random_word._get_words_from_text_file = read
    script.words = _Words(read("adjectivelist.txt"), read("nounlist.txt"))
    script.sent_tokenize = lru_cache(maxsize=8)(script.sent_tokenize)  # every sample splits the same essay


class _Words(Sequence):
    """All "adjective-noun" in sorted order without repetition, each made when it is asked for."""

    def __init__(self, adjectives: Iterable[str], nouns: Iterable[str]):
        nouns = sorted(set(nouns))
        blocks: dict[str, list[str]] = {}  # what starts alike is adjacent in sorted order
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

    def __getitem__(self, index: int) -> str:
        block = bisect_right(self._ends, index)
        head, tails = self._blocks[block]
        return head + tails[index - self._ends[block]]  # counted back from the block's end


def _find_sentence_model() -> None:
    """Let NLTK find punkt_tab, its model of English sentences, in a package that carries the official copy."""
    import nltk

    spec = importlib.util.find_spec("llama_index")  # a namespace: none of the package's code runs
    for directory in spec.submodule_search_locations if spec else ():
        carried = str(Path(directory) / "core/_static/nltk_cache")
        if carried not in nltk.data.path:
            nltk.data.path.append(carried)
    try:
        nltk.data.find("tokenizers/punkt_tab/english/")
    except LookupError:
        raise _missing("llama-index-core, for NLTK's punkt_tab") from None


@cache
def _recipes() -> dict[str, dict]:
    """The package's own list: the script and its arguments by task name."""
    import yaml

    return yaml.safe_load((_directory() / "synthetic.yaml").read_text())


def _directory() -> Path:
    return Path(_package_module("data").__file__).parent.parent


def _package_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        raise _missing(error.name) from error


def _missing(name: str) -> InputError:
    if name.startswith(PACKAGE):
        name = "nvidia-long-context-eval"
    return InputError(f"RULER needs a package that is not installed ({name}); run `make env`.")


@contextlib.contextmanager
def _process_state() -> Iterator[None]:
    """Put back what a script changes of this process: arguments, module search, the global random generators."""
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
