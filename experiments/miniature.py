"""Write the miniature benchmarks for a base model: generated samples in the schema of the real ones.

    python -m experiments.miniature --scale tiny --output build/miniature/tiny
    python -m experiments.longbench_e --scale tiny --data build/miniature/tiny/longbench_e --margin 128 --new-tokens 64
    python -m experiments.open_llm --scale tiny --data build/miniature/tiny/open_llm

Samples are made of the evaluation half of the invented words and of a book that no training here reads, and their
lengths follow the model's L. The directory appears whole; one that is there already is left alone if it is the same.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pyarrow
import pyarrow.parquet

from core.errors import InputError
from eval import longbench
from eval.miniature import Setting
from eval.miniature import longbench as small_longbench
from eval.miniature import open_llm as small_open_llm
from experiments.lab import cli, models, records, scales, texts

FACTS = records.MINIATURE
# The documents that a benchmark takes few-shot examples from come first in its file of that split.
SPLITS = {
    "truthfulqa": {"truthfulqa/multiple_choice/validation.parquet": None},
    "hellaswag": {"hellaswag/validation.parquet": None},
    "mmlu": {"mmlu/dev.parquet": 5, "mmlu/test.parquet": None},
    "arc_challenge": {"arc_challenge/train.parquet": 100, "arc_challenge/test.parquet": None},
}


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m experiments.miniature")
    parser.add_argument("--scale", default="tiny", help=f"one of {', '.join(scales.SCALES)} (default tiny)")
    parser.add_argument("--model", metavar="PATH_OR_NAME", help="for this checkpoint instead of the scale's model")
    parser.add_argument("--output", type=cli.directory, required=True, metavar="DIR")
    parser.add_argument("--samples", type=int, default=4, metavar="N", help="per LongBench-E task and bucket (4)")
    parser.add_argument("--documents", type=int, default=100, metavar="N", help="per Open LLM benchmark (100)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.samples < 1 or arguments.documents < 1:
        raise InputError("give at least one sample and one document.")

    name = arguments.model or arguments.scale
    length = models.geometry(name).context_length
    setting = Setting("eval", models.tokenizer(name), [book.text for book in texts.books(texts.SCORED)])
    facts = {"context_length": length, "seed": arguments.seed, "tokenizer": len(setting.tokenizer)}
    wanted = facts | {"samples": arguments.samples, "documents": arguments.documents}
    if arguments.output.exists():
        if _facts(arguments.output) != wanted:
            raise InputError(f"{arguments.output} holds something else; give another --output, or remove it.")
        print(f"done already: {arguments.output}")
        return
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{arguments.output.name}.", dir=arguments.output.parent))
    try:
        write_longbench(partial / "longbench_e", setting, length, arguments.samples, arguments.seed)
        write_open_llm(partial / "open_llm", setting, arguments.documents, arguments.seed)
        (partial / FACTS).write_text(json.dumps(wanted))
        partial.rename(arguments.output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(arguments.output)


def write_longbench(folder: Path, setting: Setting, length: int, count: int, seed: int) -> None:
    """<task>_e.jsonl for each of the thirteen tasks."""
    folder.mkdir()
    (folder / FACTS).write_text(json.dumps({"benchmark": small_longbench.NAME}))
    for task in longbench.TASKS:
        rows = small_longbench.samples(task, setting, length, count, seed)
        (folder / f"{task}_e.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_open_llm(folder: Path, setting: Setting, count: int, seed: int) -> None:
    """The four benchmarks' parquet files."""
    folder.mkdir()
    (folder / FACTS).write_text(json.dumps({"benchmark": small_open_llm.NAME}))
    for task, files in SPLITS.items():
        for number, (file, few) in enumerate(files.items()):
            rows = small_open_llm.documents(task, setting, few or count, seed + number)
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / file)


def _facts(folder: Path) -> dict | None:
    file = folder / FACTS
    return json.loads(file.read_text()) if file.is_file() else None


if __name__ == "__main__":
    cli.run(main)
