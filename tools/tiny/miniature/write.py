"""Write the miniature benchmarks for a base model: generated samples in the schema of the real benchmarks.

    python -m tools.tiny.miniature.write --model tiny --output build/miniature/tiny
    python -m experiments.longbench_e --model tiny --data build/miniature/tiny/longbench_e --margin 128 --new-tokens 64
    python -m experiments.open_llm --model tiny --data build/miniature/tiny/open_llm

Samples use the evaluation split of the invented words and a book that no training here reads. Their lengths follow the
model's L. The directory appears whole or not at all. If it already holds the same samples, nothing is done.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow
import pyarrow.parquet

from core import files
from core.errors import InputError
from eval import longbench
from experiments import base_models
from experiments.kit import command_line, records, texts
from experiments.kit.base_model import BaseModel
from experiments.kit.command_line import option
from experiments.training.packing import fingerprint
from tools.tiny import miniature
from tools.tiny.miniature import Setting

FACTS = records.MINIATURE
# Each benchmark's files and how many documents each holds (None: --documents). Those with a number hold the few-shot
# examples.
SPLITS = {
    "truthfulqa": {"truthfulqa/multiple_choice/validation.parquet": None},
    "hellaswag": {"hellaswag/validation.parquet": None},
    "mmlu": {"mmlu/dev.parquet": 5, "mmlu/test.parquet": None},
    "arc_challenge": {"arc_challenge/train.parquet": 100, "arc_challenge/test.parquet": None},
}


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m tools.tiny.miniature.write")
    base_models.add_argument(parser)
    parser.add_argument("--output", type=command_line.directory, required=True, metavar="DIR", help="where to write")
    option(parser, "--samples", command_line.count, "N", "samples per LongBench-E task and bucket", 4)
    option(parser, "--documents", command_line.count, "N", "documents per Open LLM benchmark", 100)
    option(parser, "--seed", command_line.seed, "N", "seed of the samples", 0)
    arguments = parser.parse_args()

    name = arguments.model
    length = BaseModel(name).geometry.context_length
    setting = Setting("eval", BaseModel(name).tokenizer, [book.text for book in texts.books(texts.SCORED)])
    facts = {
        "context_length": length,
        "seed": arguments.seed,
        "tokenizer": fingerprint(setting.tokenizer),
        "samples": arguments.samples,
        "documents": arguments.documents,
    }
    if os.path.lexists(arguments.output):
        there = arguments.output / FACTS
        if not there.is_file() or files.read_json(there, f"remove {arguments.output} to make it again") != facts:
            raise InputError(f"{arguments.output} holds something else; give another --output, or remove it.")
        print(f"done already: {arguments.output}")
        return
    with files.new(arguments.output) as folder:
        write_longbench(folder / "longbench_e", setting, length, arguments.samples, arguments.seed)
        write_open_llm(folder / "open_llm", setting, arguments.documents, arguments.seed)
        files.write_json(folder / FACTS, facts)
    print(arguments.output)


def write_longbench(folder: Path, setting: Setting, length: int, count: int, seed: int) -> None:
    """Write <task>_e.jsonl for each of the thirteen tasks."""
    files.write_json(folder / FACTS, {"benchmark": miniature.longbench.NAME})
    for task in longbench.TASKS:
        rows = miniature.longbench.samples(task, setting, length, count, seed)
        files.write(folder / f"{task}_e.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_open_llm(folder: Path, setting: Setting, count: int, seed: int) -> None:
    """Write the parquet files of the four benchmarks."""
    files.write_json(folder / FACTS, {"benchmark": miniature.open_llm.NAME})
    for task, splits in SPLITS.items():
        for number, (file, few) in enumerate(splits.items()):
            rows = miniature.open_llm.documents(task, setting, few or count, seed + number)
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / file)


if __name__ == "__main__":
    command_line.run(main)
