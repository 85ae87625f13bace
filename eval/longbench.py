"""LongBench-E (Bai et al. 2023) without a model: prompts, truncation, scores, length buckets,
averages, samples.

Everything follows the benchmark's own pred.py, eval.py and metrics.py, including their oddities: an
"improved" score could not be compared with published tables.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import re
import string
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import yaml
from pydantic import Field
from rouge import Rouge

from core.errors import InputError, check_choice
from core.schema import Count, Number, Text, check, having
from eval.intervals import RESAMPLES, mean_interval, resampled_interval

if TYPE_CHECKING:  # a table may name tasks and buckets without importing torch
    from transformers import PreTrainedTokenizerBase

HUB = "THUDM/LongBench"
BUCKETS = ("0-4k", "4-8k", "8k+")
AVERAGES = {"Avg.": BUCKETS, "Avg.>4k": BUCKETS[1:]}


def limit(window: int) -> int:
    """The tokens to which the benchmark cuts a prompt for a window: 500 below its thousands, as
    3,500 for 4k (4,096 tokens) and 15,500 for 16k, in its config/model2maxlen.json."""
    return window - 24 * (window // 1024) - 500


# ---- the metrics of the benchmark's metrics.py

_PARAGRAPH = re.compile(r"Paragraph (\d+)")


def _normalised(text: str) -> list[str]:
    """The words of `text` as SQuAD compares them: lower case, no punctuation, no articles."""
    text = text.lower().translate(str.maketrans("", "", string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def f1(prediction: str, answer: str) -> float:
    """F1 of the two bags of words."""
    predicted = _normalised(prediction)
    expected = _normalised(answer)
    common = (Counter(predicted) & Counter(expected)).total()
    if common == 0:
        return 0.0
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall)


def rouge_l(prediction: str, answer: str) -> float:
    """The F score of summary-level ROUGE-L from the `rouge` package, for which every full stop ends
    a sentence."""
    try:
        return Rouge(metrics=["rouge-l"]).get_scores([prediction], [answer], avg=True)["rouge-l"][
            "f"
        ]
    # The benchmark scores 0 when the package fails: on a text of nothing but full stops
    # (ValueError), or on two sentences of about 1000 words together, which the package compares by
    # recursion.
    except (ValueError, RecursionError):
        return 0.0


def classification(prediction: str, answer: str, all_classes: list[str]) -> float:
    """1 / (number of class names in the prediction) if the right one is among them."""
    named = [name for name in all_classes if name in prediction]
    # Removing from a list while iterating skips the name after each removed one, which lowers some
    # scores. The benchmark does this, so it stays.
    for name in named:
        if name in answer and name != answer:
            named.remove(name)
    return 1 / len(named) if answer in named else 0.0


def count(prediction: str, answer: str) -> float:
    """The share of the numbers in the prediction that equal the answer as text; an answer of 7.0 is
    7."""
    answer = re.sub(r"\.0+$", "", answer)
    numbers = re.findall(r"\d+", prediction)
    return numbers.count(answer) / len(numbers) if numbers else 0.0


def retrieval(prediction: str, answer: str) -> float:
    """:func:`count` with the number N of the reference's first "Paragraph N" as the answer."""
    return count(prediction, _PARAGRAPH.findall(answer)[0])


def edit_similarity(prediction: str, answer: str) -> float:
    """Similarity to the prediction's first line that holds no `, # or //; rounded to whole
    percent."""
    lines = prediction.lstrip("\n").split("\n")
    line = next((line for line in lines if not re.search("`|#|//", line)), "")
    # This is fuzzywuzzy's ratio, written out because that package gives other numbers if
    # python-Levenshtein is installed. Like it, difflib gives 1 for two empty texts and 0 for one,
    # and depends on the order of its arguments.
    return round(100 * SequenceMatcher(None, line, answer).ratio()) / 100


# ---- tasks


@dataclass(frozen=True)
class Task:
    """One of the thirteen tasks.

    Attributes:
        kind: what the model has to do, in the benchmark's six categories.
        max_new_tokens: how many tokens are generated.
        metric: gives the score in 0…1 of one prediction against one reference; classification takes
            the names of all classes, too.
        stops_at_newline: whether generation ends at a line feed, after at least one token.
    """

    kind: str
    max_new_tokens: int
    metric: Callable[..., float]
    stops_at_newline: bool = False

    @property
    def asks(self) -> bool:
        """Whether the benchmark puts the prompt into a model's chat template; examples and code are
        to be continued."""
        return self.kind not in ("few-shot", "code")


TASKS = {
    "qasper": Task("single-document QA", 128, f1),
    "multifieldqa_en": Task("single-document QA", 64, f1),
    "hotpotqa": Task("multi-document QA", 32, f1),
    "2wikimqa": Task("multi-document QA", 32, f1),
    "gov_report": Task("summarisation", 512, rouge_l),
    "multi_news": Task("summarisation", 512, rouge_l),
    "trec": Task("few-shot", 64, classification),
    "triviaqa": Task("few-shot", 32, f1),
    "samsum": Task("few-shot", 128, rouge_l, stops_at_newline=True),
    "passage_count": Task("synthetic", 32, count),
    "passage_retrieval_en": Task("synthetic", 32, retrieval),
    "lcc": Task("code", 64, edit_similarity),
    "repobench-p": Task("code", 64, edit_similarity),
}


def score(
    task: str, prediction: str, answers: list[str], all_classes: list[str] | None = None
) -> float:
    """The score of a prediction in 0…1: the best over the references.

    Args:
        task: a name in :data:`TASKS`.
        prediction: the generated text as decoded, white space included.
        answers: the references.
        all_classes: the class names; only trec needs them.
    """
    how = TASKS[task]
    classes = {"all_classes": all_classes} if how.metric is classification else {}
    if how.kind == "few-shot":
        prediction = prediction.lstrip("\n").split("\n")[0]
    return max((how.metric(prediction, answer, **classes) for answer in answers), default=0.0)


# ---- prompts

# SHA-256 of the templates in the benchmark's dataset2prompt.json: of a JSON list of them, in the
# order of TASKS.
_TEMPLATES_SHA256 = "b450bdd4cbce6eb409e5bb97b101f1b0e90c6065b34760a574eb3eb48113dae3"


@functools.cache
def _templates() -> dict[str, str]:
    """The benchmark's template of each task, with {context} and {input}, from the installed
    lm-eval.

    lm-eval has the benchmark's wording but not its white space. The white space is restored, and a
    hash checks the result.

    Raises:
        InputError: another lm-eval than the pinned one is installed, and words a task otherwise.
    """
    templates = {}
    for name, task in TASKS.items():
        # The package's files are found without importing it, which takes seconds.
        file = importlib.metadata.distribution("lm_eval").locate_file(
            f"lm_eval/tasks/longbench/{name}_e.yaml"
        )
        # BaseLoader does not import the functions that the file names.
        text = yaml.load(Path(str(file)).read_text(encoding="utf-8"), yaml.BaseLoader)[
            "doc_to_text"
        ]
        text = text.replace("{{context}}", "{context}").replace("{{question}}", "{input}")
        if name in ("triviaqa", "samsum"):
            text = text.replace("{context}\n{input}", "{context}\n\n{input}")
        templates[name] = text + {"synthetic": " ", "code": "\n"}.get(task.kind, "")
    if hashlib.sha256(json.dumps([*templates.values()]).encode()).hexdigest() != _TEMPLATES_SHA256:
        raise InputError(
            "the installed lm-eval words LongBench's prompts otherwise; run `make env` for the "
            "pinned."
        )
    return templates


def prompt(task: str, sample: dict) -> str:
    """The benchmark's prompt for a sample, byte for byte, not truncated and without a chat
    template."""
    template = _templates()[task]
    return template.format(context=sample["context"], input=sample["input"])


def truncate_middle(tokenizer: PreTrainedTokenizerBase, text: str, max_length: int) -> str:
    """Cut `text` in the middle where it has more than `max_length` tokens, special tokens counted.

    The first and the last max_length // 2 tokens are decoded on their own and joined, as the
    benchmark does. Tokenising the result again may give a few tokens more or fewer than max_length.
    """
    if max_length < 2:
        raise InputError(f"a prompt cannot be cut to {max_length} tokens; leave at least 2 for it.")
    tokens = tokenizer(text, truncation=False).input_ids
    if len(tokens) <= max_length:
        return text
    half = max_length // 2
    return "".join(
        tokenizer.decode(ids, skip_special_tokens=True) for ids in (tokens[:half], tokens[-half:])
    )


# ---- samples


# The benchmark's schema: the length is that of the context in words, and some files give a count as
# a number.
_SAMPLE = having(
    {
        "input": Text,
        "context": Text,
        "answers": Annotated[list[Text | Number], Field(min_length=1)],
        "length": Count,
        "identifier": Annotated[Text, Field(alias="_id")],
    },
    {"all_classes": list[Text] | None},
)
_KEYS = ("input", "context", "answers", "length", "all_classes", "_id")


def load(task: str, data: str | Path | None = None) -> list[dict]:
    """The samples of a task, each with input, context, answers, length (in words), all_classes and
    _id.

    Args:
        task: a name in :data:`TASKS`.
        data: a directory with `<task>_e.jsonl` or else `<task>.jsonl` in the benchmark's schema,
            such as the folder in its data.zip; None for the hub.

    Raises:
        InputError: the directory, the file or the hub cannot be read, or a line is not a sample
            (the message names file and line).
    """
    check_choice(task, "LongBench-E task", TASKS)
    samples = []
    lines: dict[tuple, str] = {}
    for where, row in _rows(task, data):
        sample = _checked(task, row, where)
        first = lines.setdefault((sample["_id"], sample["context"], sample["input"]), where)
        if first != where:
            raise InputError(
                f"{where} is the same sample as {first}; remove one, or it would count twice."
            )
        samples.append(sample)
    if not samples:
        raise InputError(
            f"there are no samples of {task} in {data or HUB}; a sample is one JSON object per "
            f"line."
        )
    return samples


def _rows(task: str, data: str | Path | None) -> Iterator[tuple[str, dict]]:
    """(where the row is, for messages; the row) for each row of a task's file."""
    if data is None:
        from eval import hub  # it takes two seconds, and only a download needs it

        (archive,) = hub.download(HUB, "data.zip", f"give a directory with {task}_e.jsonl instead")
        directory: Path | zipfile.Path = zipfile.Path(archive, "data/")
    else:
        directory = Path(data)
    # The benchmark's archive holds both names; those with _e are LongBench-E.
    names = [f"{task}_e.jsonl", f"{task}.jsonl"]
    files = [directory / name for name in names if (directory / name).is_file()]
    if not files:
        raise InputError(
            f"{directory} holds neither {names[0]} nor {names[1]}; add one, or leave {task} out."
        )
    with files[0].open("rb") as lines:
        for number, line in enumerate(lines, 1):
            where = f"{files[0]}, line {number}"
            if not line.strip():
                continue
            try:
                yield where, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where} is not JSON ({error}); correct or remove it.") from error


def _checked(task: str, row: Any, where: str) -> dict:
    """The row's schema keys, checked, its answers as text; other keys are dropped."""
    check(row, _SAMPLE, where, "see the benchmark's schema")
    sample = {key: row.get(key) for key in _KEYS}
    sample["answers"] = [
        f"{answer:.15g}" if isinstance(answer, float) else str(answer)
        for answer in sample["answers"]
    ]
    metric = TASKS[task].metric
    if metric is classification and not sample["all_classes"]:
        raise InputError(f"{where} lists no classes (all_classes); correct it.")
    if metric is retrieval and not all(map(_PARAGRAPH.search, sample["answers"])):
        raise InputError(f'an answer in {where} must name "Paragraph" and a number; correct it.')
    return sample


# ---- averages


def bucket(length: int) -> str:
    """The length bucket of a sample from its `length` field, which counts words, not tokens."""
    return BUCKETS[(length >= 4000) + (length >= 8000)]


def aggregate(rows: Iterable[tuple[str, int, float]]) -> dict:
    """The benchmark's table from per-sample scores, ×100, unrounded, with bootstrap 95 % intervals.

    Args:
        rows: (task, length in words, score in 0…1) of each sample.

    Returns:
        "tasks": task → bucket → {"mean", "low", "high", "n"}, the mean over the n samples.
        "buckets": bucket → the same keys and "tasks": the mean of the task means, where every task
        has equal weight
            whatever its number of samples; `tasks` counts the tasks, n all their samples.
        "averages": "Avg.", the mean of the three bucket means, and "Avg.>4k", that of 4-8k and 8k+.
        These are the
            paper's columns; the benchmark's code stops at tasks and buckets.

        A task or bucket without samples is left out, and so is an average that needs it. The
        intervals of buckets and
        averages resample the samples within each task and bucket, so they say nothing about other
        tasks.
    """
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for task, length, value in rows:
        scores[task][bucket(length)].append(100 * value)
    tasks = {
        task: {name: mean_interval(scores[task][name]) for name in BUCKETS if name in scores[task]}
        for task in TASKS
        if task in scores
    }
    rng = np.random.default_rng(0)
    buckets = {}
    resampled = {}
    for name in BUCKETS:
        groups = [np.array(scores[task][name]) for task in tasks if name in scores[task]]
        if not groups:
            continue
        resampled[name] = np.mean(
            [rng.choice(group, (RESAMPLES, len(group))).mean(axis=1) for group in groups], axis=0
        )
        mean = np.mean([group.mean() for group in groups])
        interval = resampled_interval(mean, resampled[name], sum(map(len, groups)))
        buckets[name] = interval | {"tasks": len(groups)}
    averages = {
        name: resampled_interval(
            np.mean([buckets[each]["mean"] for each in over]),
            np.mean([resampled[each] for each in over], axis=0),
            sum(buckets[each]["n"] for each in over),
        )
        for name, over in AVERAGES.items()
        if buckets.keys() >= set(over)
    }
    return {"tasks": tasks, "buckets": buckets, "averages": averages}
