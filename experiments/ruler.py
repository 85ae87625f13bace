"""RULER: 13 retrieval, tracing, aggregation and question answering tasks at given lengths (the paper's RULER table).

    python -m experiments.ruler --model PATH_OR_NAME --lengths 4096 8192 --samples 20

NVIDIA's own generator makes the prompts with the model's tokenizer, in the template for base models. As in NVIDIA's
wrapper, the model reads them with the special tokens that the tokenizer adds by default, such as LLaMA2's <s>.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import InputError
from eval import ruler
from eval.generation import Request
from experiments.kit import command_line, experiment, load_model


def main() -> None:
    parser = experiment.parser(__doc__, "ruler")
    parser.add_argument(
        "--lengths",
        type=command_line.count,
        nargs="+",
        metavar="TOKENS",
        help="tokens of prompt and answer together (default: L, 2L and 4L)",
    )
    parser.add_argument(
        "--tasks", nargs="+", default=list(ruler.TASKS), metavar="TASK", help="tasks to run (default: all 13)"
    )
    parser.add_argument(
        "--samples", type=command_line.count, default=500, metavar="N", help="samples per task and length (default 500)"
    )
    parser.add_argument("--seed", type=command_line.seed, default=42, help="seed of the generator (default 42)")
    arguments = parser.parse_args()
    for task in arguments.tasks:
        if task not in ruler.TASKS:
            raise InputError(f"unknown task {task!r}; choose among {', '.join(ruler.TASKS)}.")

    evaluation = experiment.Evaluation(arguments, "ruler")
    trained = load_model.geometry(evaluation.name).context_length
    lengths = arguments.lengths or [trained, 2 * trained, 4 * trained]
    settings = {"lengths": lengths, "tasks": arguments.tasks, "samples": arguments.samples, "seed": arguments.seed}
    keys = [
        f"{length}/{task}/{index}"
        for length in lengths
        for task in arguments.tasks
        for index in range(arguments.samples)
    ]
    made: dict[str, dict] = {}  # samples by key; every method gets the same ones

    for run, file in evaluation.runs({}, **settings):

        def evaluate(todo: list[str], run: dict = run) -> Iterator[tuple[str, dict]]:
            engine = evaluation.engine(run)
            for length, task in dict.fromkeys(tuple(key.split("/")[:2]) for key in todo):
                own = [key for key in todo if key.startswith(f"{length}/{task}/")]
                if not made.keys() >= set(own):
                    drawn = ruler.samples(task, int(length), engine.tokenizer, arguments.samples, arguments.seed)
                    made.update({f"{length}/{task}/{sample['index']}": sample for sample in drawn})
                requests = [_request(engine.tokenizer, key, task, made[key]) for key in own]
                for key, tokens in engine.generate(requests):
                    prediction = engine.tokenizer.decode(tokens, skip_special_tokens=True)
                    score = ruler.score(task, prediction, made[key]["references"])
                    yield key, {"score": score, "tokens": made[key]["length"], "prediction": prediction}

        parts = experiment.measure(run, file, keys, evaluate)
        if parts is not None:
            rows = []
            for key, value in experiment.values(parts).items():
                length, task, index = key.split("/")
                rows.append({"task": task, "length": int(length), "index": int(index), "score": value["score"]})
            print(experiment.finish(run, file, parts, {"scores": ruler.aggregate(rows)}))


def _request(tokenizer, key: str, task: str, sample: dict) -> Request:
    prompt = tuple(tokenizer(sample["prompt"]).input_ids)
    return Request(key, prompt, ruler.TASKS[task].tokens_to_generate)


if __name__ == "__main__":
    command_line.run(main)
