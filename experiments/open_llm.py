"""TruthfulQA, HellaSwag, MMLU and ARC-c through lm-eval's own tasks (the paper's Table 2).

    python -m experiments.open_llm --model NAME --limit 300
    python -m experiments.open_llm --model smollm2 --method dprope --benchmarks DIR --limit 300

--benchmarks is a directory whose folder open_llm holds parquet files in the hub's schema
(hellaswag/validation.parquet, mmlu/test.parquet, …). Without it the hub's files are used.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import records
from core.discovery import later
from core.errors import check_choice
from eval import hub
from eval.open_llm_files import TASKS
from experiments.kit import command_line
from experiments.kit.command_line import (
    count_or_all,
    existing_directory,
    list_option,
    none_or_more,
    option,
)
from experiments.kit.experiment import Experiment, Prepared

if TYPE_CHECKING:
    from eval import open_llm
else:
    open_llm = later("eval.open_llm")


class OpenLLM(Experiment):
    name = "open_llm"
    unit = "score in percent"

    @staticmethod
    def add_options(parser) -> None:
        option(
            parser,
            "--benchmarks",
            existing_directory,
            "DIR",
            "parquet files in DIR/open_llm (default: the hub's)",
        )
        list_option(
            parser,
            "--tasks",
            str,
            "TASK",
            "benchmarks (default: all four)",
            list(TASKS),
        )
        option(
            parser,
            "--limit",
            count_or_all,
            "N|all",
            "score a seeded sample of N documents of each (default: all)",
        )
        option(
            parser,
            "--shots",
            none_or_more,
            "N",
            "at most N of the paper's examples per prompt",
            max(benchmark.shots for benchmark in TASKS.values()),
        )

    def prepare(self) -> Prepared:
        """A sample is a document: the hash of what it asks."""
        given = self.arguments
        samples = {}
        data = {}
        for task, loaded in self._loaded.items():
            of_task = open_llm.content_hashes(loaded, open_llm.documents(loaded, given.limit))
            samples |= of_task
            data[task] = {
                "documents": len(of_task),
                "sha256": records.identity(documents=of_task),
            }
            if self.benchmark is None:
                data[task]["revision"] = hub.REVISIONS[TASKS[task].hub]
        settings = self.imitated
        if any(self._shots(task) < TASKS[task].shots for task in given.tasks):
            settings["shots"] = given.shots
        return Prepared(samples, settings, data)

    def requests(self, keys: list[str], context_length: int) -> list[tuple[str, list[str]]]:
        """The documents' keys by task."""
        by_task = self._by_task(keys)
        for task, of_task in by_task.items():
            open_llm.check(self.model.tokenizer, self._loaded[task], of_task)
        return list(by_task.items())

    def measure(self, model, requests: list) -> Iterator[tuple[str, dict]]:
        for task, keys in requests:
            tasks = self._loaded[task]
            yield from open_llm.evaluate(model, self.model.tokenizer, tasks, keys)

    def summary(self, values: dict[str, dict]) -> dict:
        scores = {
            task: [values[key]["score"] for key in keys]
            for task, keys in self._by_task(values).items()
        }
        # Each document's score, so that methods can be paired: they differ by less than documents
        # do.
        by_document = {task: [round(score, 4) for score in scores[task]] for task in scores}
        return {"tasks": open_llm.aggregate(scores), "by_document": by_document}

    def _by_task(self, keys: Iterable[str]) -> dict[str, list[str]]:
        """The keys of each task that has some, in the order of --tasks, as they come."""
        by_task = defaultdict(list)
        for key in keys:
            by_task[key.split("/")[0]].append(key)
        return by_task

    @functools.cached_property
    def _loaded(self) -> dict[str, open_llm.Tasks]:
        """lm-eval's tasks of each benchmark, read once."""
        for task in self.arguments.tasks:
            check_choice(task, "task", TASKS)
        return {
            task: open_llm.load(task, self.benchmark, self._shots(task))
            for task in self.arguments.tasks
        }

    def _shots(self, task: str) -> int:
        return min(self.arguments.shots, TASKS[task].shots)

    def rows(self, scores: dict) -> Iterable[tuple[str, ...]]:
        return command_line.rows(scores["tasks"])


main = OpenLLM.main

if __name__ == "__main__":
    command_line.run(main)
