"""LongBench-E: 13 long-context tasks, by prompt length in words (the paper's main table).

    python -m experiments.longbench_e --model PATH_OR_NAME --data DIR
    python -m experiments.longbench_e --scale llama2-7b --method dprope --factor 2 --n-hat 80

--data is a directory of JSONL files in the benchmark's schema, <task>_e.jsonl or <task>.jsonl. Without it the hub's
copy is used. As in the benchmark, prompts longer than the window minus 500 tokens are cut in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import InputError
from eval import hub, longbench
from eval.generation import Request
from experiments.kit import command_line, experiment, records


def main() -> None:
    parser = experiment.parser(__doc__, "longbench_e")
    parser.add_argument(
        "--data",
        type=command_line.existing_directory,
        metavar="DIR",
        help="directory of JSONL files (default: the hub's copy)",
    )
    parser.add_argument(
        "--tasks", nargs="+", default=list(longbench.TASKS), metavar="TASK", help="tasks to run (default: all 13)"
    )
    parser.add_argument(
        "--limit", type=command_line.count, metavar="N", help="run the first N samples of each task (default: all)"
    )
    parser.add_argument(
        "--window",
        type=command_line.count,
        metavar="TOKENS",
        help="context window; longer prompts are cut to it minus --margin (default: the extended context length)",
    )
    parser.add_argument(
        "--margin",
        type=command_line.none_or_more,
        default=longbench.MARGIN,
        metavar="TOKENS",
        help=f"tokens of the window that a prompt leaves free (default {longbench.MARGIN})",
    )
    parser.add_argument(
        "--new-tokens", type=command_line.count, metavar="N", help="generate at most N (default: the task's number)"
    )
    arguments = parser.parse_args()

    evaluation = experiment.Evaluation(arguments, "longbench_e")
    samples = {}
    for task in arguments.tasks:
        if task not in longbench.TASKS:
            raise InputError(f"unknown task {task!r}; choose among {', '.join(longbench.TASKS)}.")
        for number, sample in enumerate(longbench.load(task, arguments.data)[: arguments.limit]):
            samples[f"{task}/{number}"] = (task, sample)
    data = {"samples": len(samples), "sha256": records.identity(samples={k: s for k, (_, s) in samples.items()})}
    if arguments.data is None:
        data["revision"] = hub.REVISIONS[longbench.HUB]

    settings = {"tasks": arguments.tasks, "window": arguments.window} | records.benchmark(arguments.data)
    if arguments.margin != longbench.MARGIN or arguments.new_tokens:  # these differ from the benchmark's
        settings |= {"margin": arguments.margin, "new_tokens": arguments.new_tokens}

    for run, file in evaluation.runs(data, **settings):

        def evaluate(keys: list[str], run: dict = run) -> Iterator[tuple[str, dict]]:
            engine = evaluation.engine(run)
            window = arguments.window or engine.context_length
            room, most = window - arguments.margin, arguments.new_tokens
            requests = [_request(engine.tokenizer, key, *samples[key], room, most) for key in keys]
            for key, tokens in engine.generate(requests):
                task, sample = samples[key]
                prediction = engine.tokenizer.decode(tokens, skip_special_tokens=True)
                value = longbench.score(task, prediction, sample["answers"], sample["all_classes"])
                yield key, {"score": value, "prediction": prediction}

        parts = experiment.measure(run, file, list(samples), evaluate)
        if parts is not None:
            rows = [
                {"task": task, "id": key, "length": sample["length"], "score": parts[key]["value"]["score"]}
                for key, (task, sample) in samples.items()
            ]
            print(experiment.finish(run, file, parts, {"scores": longbench.aggregate(rows)}))


def _request(tokenizer, key: str, name: str, sample: dict, room: int, most: int | None) -> Request:
    task = longbench.TASKS[name]
    prompt = longbench.truncate_middle(tokenizer, longbench.prompt(name, sample), room)
    line_feed = tokenizer.encode("\n", add_special_tokens=False)[-1]
    return Request(
        key,
        tuple(tokenizer(prompt).input_ids),
        min(task.max_new_tokens, most or task.max_new_tokens),
        stop=frozenset([line_feed]) if task.stops_at_newline else frozenset(),
        min_new_tokens=1 if task.stops_at_newline else 0,
    )


if __name__ == "__main__":
    command_line.run(main)
