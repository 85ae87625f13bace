"""TruthfulQA, HellaSwag, MMLU and ARC-c through lm-eval's own tasks (the paper's Open LLM table).

    python -m experiments.open_llm --model PATH_OR_NAME --limit 300
    python -m experiments.open_llm --scale smollm2 --method dprope --data DIR --limit 300

--data is a directory of parquet files in the hub's schema (hellaswag/validation.parquet, mmlu/test.parquet, …).
Without it the hub's files are used.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import InputError
from eval import hub, open_llm
from experiments.kit import command_line, experiment, records


def main() -> None:
    parser = experiment.parser(__doc__, "open_llm")
    parser.add_argument(
        "--data",
        type=command_line.existing_directory,
        metavar="DIR",
        help="directory of parquet files (default: the hub's)",
    )
    parser.add_argument(
        "--tasks", nargs="+", default=list(open_llm.TASKS), metavar="TASK", help="benchmarks to run (default: all four)"
    )
    parser.add_argument(
        "--limit",
        type=command_line.count,
        metavar="N",
        help="score a seeded sample of N documents of each (default: all)",
    )
    parser.add_argument(
        "--shots",
        type=command_line.none_or_more,
        metavar="N",
        help="at most N examples per prompt (default: the paper's)",
    )
    parser.add_argument(
        "--batch-size",
        type=command_line.count,
        default=8,
        metavar="N",
        help="answers read side by side; changes memory, not scores (default 8)",
    )
    arguments = parser.parse_args()
    for task in arguments.tasks:
        if task not in open_llm.TASKS:
            raise InputError(f"unknown task {task!r}; choose among {', '.join(open_llm.TASKS)}.")
    fewer = {} if arguments.shots is None else {"shots": arguments.shots}
    if fewer and arguments.shots < 0:
        raise InputError(f"a prompt cannot have {arguments.shots} examples; give --shots 0 or more.")

    evaluation = experiment.Evaluation(arguments, "open_llm")
    keys = {task: open_llm.documents(task, arguments.data, arguments.limit) for task in arguments.tasks}
    flat = [key for task in arguments.tasks for key in keys[task]]
    data = {task: {"documents": len(keys[task]), "sha256": records.identity(keys=keys[task])} for task in keys}
    if arguments.data is None:
        for task, facts in data.items():
            facts["revision"] = hub.REVISIONS[open_llm.TASKS[task].hub]

    settings = records.benchmark(arguments.data) | fewer
    for run, file in evaluation.runs(data, **settings):

        def evaluate(todo: list[str], run: dict = run) -> Iterator[tuple[str, dict]]:
            loaded = evaluation.extended(run)
            for task, all_of_it in keys.items():
                own = set(all_of_it).intersection(todo)
                shots = min(arguments.shots, open_llm.TASKS[task].shots) if fewer else None
                if own:
                    limits = {"batch_size": arguments.batch_size, "shots": shots}
                    yield from open_llm.evaluate(loaded.model, loaded.tokenizer, task, own, arguments.data, **limits)

        parts = experiment.measure(run, file, flat, evaluate)
        if parts is not None:
            scores = {task: [parts[key]["value"]["score"] for key in keys[task]] for task in keys}
            rows = [
                {"task": task, "key": key, "score": score}
                for task in keys
                for key, score in zip(keys[task], scores[task])
            ]
            # Each document's score, so that methods can be paired: they differ by less than documents do.
            by_document = {task: [round(score, 4) for score in own] for task, own in scores.items()}
            print(experiment.finish(run, file, parts, {"scores": open_llm.aggregate(rows), "by_document": by_document}))


if __name__ == "__main__":
    command_line.run(main)
