"""Write the miniature benchmarks for a base model: generated samples in the schema of the real
benchmarks.

    python -m tools.tiny.miniature.write --model tiny --output build/benchmarks
    python -m experiments.longbench_e --model tiny --benchmarks build/benchmarks
    python -m experiments.open_llm --model tiny --benchmarks build/benchmarks

The first line makes models/tiny/benchmarks. Samples use the evaluation split of the invented words
and a book that no training here reads. Their lengths follow the model's L. The directory appears
whole or not at all.
"""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet

import records
from core import files
from eval import longbench, open_llm_files
from experiments import base_models
from experiments.kit import command_line, texts
from experiments.kit.checkpoint import Checkpoint
from experiments.kit.command_line import option
from experiments.kit.identity import of_tokenizer as fingerprint
from tools.tiny import miniature
from tools.tiny.miniature import Source

FACTS = records.MINIATURE
FEW = {"dev": 5, "train": 100}  # the documents of the splits that hold few-shot examples


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m tools.tiny.miniature.write")
    base_models.add_argument(parser)
    parser.add_argument(
        "--output", type=command_line.directory, required=True, metavar="DIR", help="where to write"
    )
    option(
        parser, "--samples", command_line.count, "N", "samples per LongBench-E task and bucket", 4
    )
    option(parser, "--documents", command_line.count, "N", "documents per Open LLM benchmark", 100)
    option(parser, "--seed", command_line.seed, "N", "seed of the samples", 0)
    arguments = parser.parse_args()

    base = Checkpoint(arguments.model)
    length = base.geometry.context_length
    tokenizer = base.tokenizer
    source = Source("eval", tokenizer, [book.text for book in texts.books(texts.SCORED)])
    with files.new(arguments.output) as folder:
        write_longbench(folder / "longbench_e", source, length, arguments.samples, arguments.seed)
        write_open_llm(folder / "open_llm", source, arguments.documents, arguments.seed)
        counts = {"samples": arguments.samples, "documents": arguments.documents}
        facts = {
            "context_length": length,
            "seed": arguments.seed,
            "tokenizer": fingerprint(tokenizer),
            **counts,
        }
        files.write_json(folder / FACTS, facts)
    print(arguments.output)


def write_longbench(folder: Path, source: Source, length: int, count: int, seed: int) -> None:
    """Write <task>_e.jsonl for each of the thirteen tasks."""
    files.write_json(folder / FACTS, {"benchmark": miniature.longbench.NAME})
    for task in longbench.TASKS:
        rows = miniature.longbench.samples(task, source, length, count, seed)
        files.write(
            folder / f"{task}_e.jsonl",
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
        )


def write_open_llm(folder: Path, source: Source, count: int, seed: int) -> None:
    """Write the parquet files of the four benchmarks."""
    files.write_json(folder / FACTS, {"benchmark": miniature.open_llm.NAME})
    for task, benchmark in open_llm_files.TASKS.items():
        for number, (split, file) in enumerate(benchmark.files.items()):
            rows = miniature.open_llm.documents(task, source, FEW.get(split, count), seed + number)
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / file)


if __name__ == "__main__":
    command_line.run(main)
