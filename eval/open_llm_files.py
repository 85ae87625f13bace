"""The four Open LLM benchmarks: what each is, and where its documents are read from.

Documents come from parquet files: from the Hugging Face repositories that lm-eval's tasks name, at
a pinned commit, or from a directory `data` with the same columns:

    <data>/truthfulqa/multiple_choice/validation.parquet
    <data>/hellaswag/validation.parquet
    <data>/mmlu/dev.parquet, test.parquet               all subjects; the column `subject` says
    which <data>/arc_challenge/train.parquet, test.parquet
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow
import pyarrow.parquet

from core.errors import InputError, in_one_line
from eval import hub


@dataclass(frozen=True)
class Benchmark:
    """One column of the paper's table.

    Attributes:
        title: the paper's name for it.
        task: the name of lm-eval's task, or the prefix of its tasks' names if there is one per
            subject.
        folder: where lm-eval keeps that task.
        shots: the number of few-shot examples in the prompt.
        metric: lm-eval's name of the reported metric.
        files: of every split that is read, the local file and that of the repository; the last is
            scored, and one before it gives the examples.
        hub: the repository that lm-eval's task names.
    """

    title: str
    task: str
    folder: str
    shots: int
    metric: str
    files: dict[str, tuple[str, str]]
    hub: str


TASKS: dict[str, Benchmark] = {
    "truthfulqa": Benchmark(
        title="TruthfulQA",
        task="truthfulqa_mc2",
        folder="truthfulqa",
        shots=0,  # six questions and answers are part of the task's own prompt
        metric="acc",  # the probability mass of the true answers (mc2)
        files={
            "validation": (
                "truthfulqa/multiple_choice/validation.parquet",
                "multiple_choice/validation-00000-of-00001.parquet",
            )
        },
        hub="truthfulqa/truthful_qa",
    ),
    "hellaswag": Benchmark(
        title="HellaSwag",
        task="hellaswag",
        folder="hellaswag",
        shots=0,
        metric="acc_norm",
        files={
            "validation": (
                "hellaswag/validation.parquet",
                "data/validation-00000-of-00001.parquet",
            )
        },
        hub="Rowan/hellaswag",
    ),
    "mmlu": Benchmark(
        title="MMLU",
        task="mmlu_",
        folder="mmlu/default",
        shots=5,
        metric="acc",
        # lm-eval's 57 tasks read one folder per subject: about 500 requests, which the hub limits.
        # "all" has them all.
        files={
            "dev": ("mmlu/dev.parquet", "all/dev-00000-of-00001.parquet"),
            "test": ("mmlu/test.parquet", "all/test-00000-of-00001.parquet"),
        },
        hub="cais/mmlu",
    ),
    "arc_challenge": Benchmark(
        title="ARC-c",
        task="arc_challenge",
        folder="arc",
        shots=25,
        metric="acc_norm",
        files={
            "train": (
                "arc_challenge/train.parquet",
                "ARC-Challenge/train-00000-of-00001.parquet",
            ),
            "test": (
                "arc_challenge/test.parquet",
                "ARC-Challenge/test-00000-of-00001.parquet",
            ),
        },
        hub="allenai/ai2_arc",
    ),
}


Tables = dict[str, pyarrow.Table]  # by split


def read(benchmark: Benchmark, data: Path | None) -> Tables:
    """The documents of each split, from a directory or, if that is None, from the hub.

    Raises:
        InputError: they cannot be read, or there are none to score.
    """
    paths = {}
    for split, (local, remote) in benchmark.files.items():
        if data is None:
            otherwise = "give a directory of local files"
            paths[split] = hub.download(benchmark.hub, remote, otherwise)[0]
        else:
            paths[split] = data / local
    tables = {split: _read(path) for split, path in paths.items()}
    *_, scored = tables
    if not tables[scored].num_rows:
        raise InputError(f"{paths[scored]} has no rows; put documents to score there.")
    return tables


def _read(file: Path) -> pyarrow.Table:
    try:
        return pyarrow.parquet.ParquetFile(
            file
        ).read()  # read_table would make a column of a folder named a=b
    except (pyarrow.ArrowException, OSError) as error:
        reason = in_one_line(error)
        raise InputError(
            f"{file} cannot be read as parquet ({reason}); put an intact copy there."
        ) from error
