"""RULER: 13 retrieval, tracing, aggregation and question answering tasks at given lengths (the
paper's Table 8).

    python -m experiments.ruler --model NAME --lengths 4096 8192 --samples 20

NVIDIA's own generator makes the prompts with the model's tokenizer, in the template for base
models. As in NVIDIA's wrapper, the model reads them with the special tokens that the tokenizer adds
by default, such as LLaMA2's <s>.
"""

import functools
from collections.abc import Iterable

import records
from core import files
from core.errors import check_choice
from core.schema import Count, Text, check, having
from eval import Request, ruler
from experiments.kit import command_line
from experiments.kit.command_line import count, list_option, option, seed
from experiments.kit.experiment import Prepared
from experiments.kit.generation import Generation

_SAMPLE = having({"index": Count, "prompt": Text, "references": list[Text], "length": Count})
_SAMPLES = having({"samples": list[_SAMPLE]})


class Ruler(Generation):
    name = "ruler"
    unit = "score in percent, by length"

    @staticmethod
    def add_options(parser) -> None:
        lengths = "tokens of prompt and answer together (default: L, 2L and 4L)"
        list_option(parser, "--lengths", count, "TOKENS", lengths)
        list_option(
            parser,
            "--tasks",
            str,
            "TASK",
            "tasks to run (default: all 13)",
            list(ruler.TASKS),
        )
        option(parser, "--samples", count, "N", "samples per task and length", 500)
        option(parser, "--seed", seed, "N", "seed of the generator", 42)
        Ruler.add_prompt_options(parser, "tasks")

    def prepare(self) -> Prepared:
        given = self.arguments
        for task in given.tasks:
            check_choice(task, "task", ruler.TASKS)
        lengths = given.lengths or [self.context_length * times for times in (1, 2, 4)]

        def of_task(task: str) -> dict[str, dict]:
            return {
                f"{length}/{task}/{sample['index']}": sample
                for length in lengths
                for sample in self._kept(task, length)
            }

        tasks = [task for task in ruler.TASKS if task in given.tasks]
        fitting, samples = self.that_fit("--tasks", tasks, of_task)
        settings = {
            "lengths": lengths,
            "tasks": fitting,
            "samples": given.samples,
            "seed": given.seed,
        }
        return self.prompts(samples, settings)

    def _kept(self, task: str, length: int) -> list[dict]:
        """A task's samples at a length, kept on disk, because making 500 of them at 16k tokens
        takes minutes."""
        given = self.arguments
        name = records.identity(
            task=task,
            length=length,
            count=given.samples,
            seed=given.seed,
            tokenizer=self.model.identity["tokenizer"],
            code=records.code_hash(),
            **self.of_chat,
        )
        file = self.results.resolve().parent / f"runs/samples/ruler_{name}.json"
        with files.lock(file, wait=True):  # of several processes, the first makes them
            if not file.is_file():
                encode = functools.partial(self._encoded, task)
                tokenizer = self.model.tokenizer
                drawn = ruler.samples(task, length, tokenizer, given.samples, given.seed, encode)
                files.write_json(file, {"samples": drawn})
            again = "remove it to make the samples again"
            kept = files.read_json(file, again)
            check(kept, _SAMPLES, str(file), again)
            return kept["samples"]

    def request(self, key: str, sample: dict, context_length: int) -> Request:
        task = key.split("/")[1]
        return Request(key, self._encoded(task, sample["prompt"]), ruler.TASKS[task])

    def _encoded(self, task: str, prompt: str) -> tuple[int, ...]:
        _, begun = ruler.parted(task, prompt)
        return self.encoded(prompt, begun)

    def score(self, key: str, sample: dict, prediction: str) -> dict:
        score = ruler.score(key.split("/")[1], prediction, sample["references"])
        return {"score": score, "tokens": sample["length"]}

    def summary(self, values: dict[str, dict]) -> dict:
        return ruler.aggregate(values)

    def rows(self, scores: dict) -> Iterable[tuple[str, ...]]:
        return command_line.rows(scores["lengths"] | {"average": scores["average"]})


main = Ruler.main

if __name__ == "__main__":
    command_line.run(main)
