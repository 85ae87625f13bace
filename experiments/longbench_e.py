"""LongBench-E: 13 long-context tasks, by prompt length in words (the paper's Table 1).

    python -m experiments.longbench_e --model NAME --benchmarks DIR
    python -m experiments.longbench_e --model llama2-7b --method dprope --factor 2 --n-hat 80

--benchmarks is a directory whose folder longbench_e holds JSONL files in the benchmark's schema,
<task>_e.jsonl or <task>.jsonl. Without it the hub's copy is used. As in the benchmark, prompts
of more than 3,500 tokens for a window of 4k, or 7,500 for 8k, are cut in the middle.
"""

from collections.abc import Iterable

from eval import Request, hub, longbench
from experiments.kit import command_line
from experiments.kit.command_line import (
    count,
    count_or_all,
    existing_directory,
    list_option,
    none_or_more,
    option,
)
from experiments.kit.experiment import Prepared
from experiments.kit.generation import Generation


class LongBenchE(Generation):
    name = "longbench_e"
    unit = "score in percent, by length of the prompt in words"

    @staticmethod
    def add_options(parser) -> None:
        source = "JSONL files in DIR/longbench_e (default: the hub's copy)"
        option(parser, "--benchmarks", existing_directory, "DIR", source)
        list_option(
            parser,
            "--tasks",
            str,
            "TASK",
            "tasks to run (default: all 13)",
            list(longbench.TASKS),
        )
        option(
            parser,
            "--limit",
            count_or_all,
            "N|all",
            "run the first N samples of each task (default: all)",
        )
        option(
            parser,
            "--window",
            count,
            "TOKENS",
            "longer prompts are cut for a window of so many tokens (default: L')",
        )
        margin = (
            "tokens of the window that a prompt leaves free (default: the benchmark's, 596 of 4k)"
        )
        option(parser, "--margin", none_or_more, "TOKENS", margin)
        option(
            parser, "--new-tokens", count, "N", "generate at most N (default: the task's number)"
        )
        LongBenchE.add_prompt_options(parser)

    def prepare(self) -> Prepared:
        given = self.arguments
        samples = {}
        for task in given.tasks:
            of_task = longbench.load(task, self.benchmark)[: given.limit]
            samples |= {f"{task}/{number}": sample for number, sample in enumerate(of_task)}
        default = self.run_length(self.comparison()[0][0])
        settings = {
            "tasks": [task for task in longbench.TASKS if task in given.tasks],
            "window": None if given.window == default else given.window,
            **self.imitated,
        }
        settings["margin"] = "the benchmark's" if given.margin is None else given.margin
        if given.margin is not None or given.new_tokens:  # they differ from the benchmark's
            settings["new_tokens"] = given.new_tokens
        revision = {} if self.benchmark else {"revision": hub.REVISIONS[longbench.HUB]}
        return self.prompts(samples, settings, **revision)

    def request(self, key: str, sample: dict, context_length: int) -> Request:
        name = key.split("/")[0]
        task = longbench.TASKS[name]
        window = self.arguments.window or context_length
        margin = self.arguments.margin
        room = longbench.limit(window) if margin is None else window - margin
        prompt = longbench.truncate_middle(
            self.model.tokenizer, longbench.prompt(name, sample), room
        )
        line_feed = self.model.tokenizer.encode("\n", add_special_tokens=False)[-1:]
        ends = line_feed if task.stops_at_newline else []
        return Request(
            key,
            self.encoded(prompt, asks=task.asks),
            min(task.max_new_tokens, self.arguments.new_tokens or task.max_new_tokens),
            stop=frozenset(ends),
            min_new_tokens=int(task.stops_at_newline),
        )

    def score(self, key: str, sample: dict, prediction: str) -> dict:
        task = key.split("/")[0]
        return {
            "score": longbench.score(task, prediction, sample["answers"], sample["all_classes"])
        }

    def summary(self, values: dict[str, dict]) -> dict:
        samples = self.prepared.samples
        return longbench.aggregate(
            (key.split("/")[0], samples[key]["length"], value["score"])
            for key, value in values.items()
        )

    def rows(self, scores: dict) -> Iterable[tuple[str, ...]]:
        return command_line.rows(scores["buckets"] | scores["averages"])


main = LongBenchE.main

if __name__ == "__main__":
    command_line.run(main)
