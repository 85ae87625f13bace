"""TruthfulQA, HellaSwag, MMLU and ARC-c through lm-eval's own tasks (the paper's Table 2).

    python -m experiments.open_llm --model NAME --limit 300
    python -m experiments.open_llm --model smollm2 --method dprope --benchmarks DIR --limit 300

--benchmarks is a directory whose folder open_llm holds parquet files in the hub's schema
(hellaswag/validation.parquet, mmlu/test.parquet, …). Without it the hub's files are used.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import check_choice
from eval import hub, open_llm
from experiments.kit import command_line, records
from experiments.kit.command_line import count_or_all, existing_directory, none_or_more, option
from experiments.kit.experiment import Experiment


class OpenLLM(Experiment):
    __doc__ = __doc__
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
        option(
            parser,
            "--tasks",
            str,
            "TASK",
            "benchmarks (default: all four)",
            list(open_llm.TASKS),
            several=True,
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
            "at most N examples per prompt (default: the paper's)",
        )

    def settings(self) -> dict:
        for task in self.arguments.tasks:
            check_choice(task, "task", open_llm.TASKS)
        fewer = {} if self.arguments.shots is None else {"shots": self.arguments.shots}
        return records.benchmark(self.benchmark) | fewer

    def samples(self) -> dict[str, str]:
        """The hash of what each document asks."""
        samples = {}
        for task in self.arguments.tasks:
            keys = open_llm.documents(task, self.benchmark, self.arguments.limit)
            samples |= open_llm.content_hashes(task, keys, self.benchmark, self._shots(task))
        return samples

    def data(self) -> dict:
        """By benchmark, the number of its documents and a hash of what is asked."""
        facts = {}
        for task in self.arguments.tasks:
            documents = self._of(task, self.content)
            facts[task] = {
                "documents": len(documents),
                "sha256": records.identity(documents=documents),
            }
            if self.benchmark is None:
                facts[task]["revision"] = hub.REVISIONS[open_llm.TASKS[task].hub]
        return facts

    def check(self, run: dict, keys: list[str]) -> None:
        for task in self.arguments.tasks:
            of_task = self._of(task, dict.fromkeys(keys))
            open_llm.check(self.base.tokenizer, task, of_task, self.benchmark, self._shots(task))

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, dict]]:
        model = self.extended(run)
        for task in self.arguments.tasks:
            if of_task := self._of(task, dict.fromkeys(keys)):
                how = {"data": self.benchmark, "shots": self._shots(task)}
                yield from open_llm.evaluate(model, self.base.tokenizer, task, of_task, **how)

    def summary(self, run: dict, values: dict[str, dict]) -> dict:
        by_task = {
            task: [value["score"] for value in self._of(task, values).values()]
            for task in self.arguments.tasks
        }
        rows = [
            {"task": task, "score": score} for task, scores in by_task.items() for score in scores
        ]
        # Each document's score, so that methods can be paired: they differ by less than documents
        # do.
        by_document = {
            task: [round(score, 4) for score in scores] for task, scores in by_task.items()
        }
        return {"scores": open_llm.aggregate(rows), "by_document": by_document}

    def _shots(self, task: str) -> int | None:
        return (
            None
            if self.arguments.shots is None
            else min(self.arguments.shots, open_llm.TASKS[task].shots)
        )

    @staticmethod
    def _of(task: str, by_key: dict) -> dict:
        return {key: value for key, value in by_key.items() if key.split("/")[0] == task}


main = OpenLLM.main

if __name__ == "__main__":
    command_line.run(main)
