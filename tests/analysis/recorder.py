"""Records in memory of a model that no list knows."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

import records
from analysis.results import Results
from tests.files import write, write_record

TASKS = ("truthfulqa", "hellaswag", "mmlu", "arc_challenge")
LENGTH = 8192  # L of the model


def score(mean: float, width: float = 1.0, n: int = 5) -> dict:
    """As records hold one."""
    return {"mean": mean, "low": mean - width, "high": mean + width, "n": n}


def on_texts(losses: dict[int, dict[str, float]], **more) -> dict:
    """The run and the scores of experiments.perplexity, from the mean loss by window length and
    text."""
    return {
        "lengths": list(losses),
        "stride": 256,
        "tokens": None,
        "data": {title: "hash" for of in losses.values() for title in of},
        "scores": {
            "by_length": [
                {"length": length, "tokens": 100 * len(of)} for length, of in losses.items()
            ],
            "by_window": {
                f"{title}/{length}/{begin}": [count * loss, count]
                for length, of in losses.items()
                for title, loss in of.items()
                for begin, count in ((0, 60), (60, 40))
            },
        },
    } | more


def in_books(within, beyond) -> dict[str, tuple[float, float]]:
    """Numbers within L and beyond it, one of each for a book."""
    return {f"Book {i}": pair for i, pair in enumerate(zip(within, beyond, strict=True))}


def of_passkeys(shares: dict[int, float], asked: int) -> dict:
    """The scores of experiments.passkey from the share that is found by length, of so many prompts
    each, every one at a depth of its own."""
    by_length = [
        {"length": length, "mean": share, "low": 0, "high": 1, "n": asked}
        for length, share in shares.items()
    ]
    by_depth = [
        {"length": length, "depth": number, "mean": float(number < round(share * asked)), "n": 1}
        for length, share in shares.items()
        for number in range(asked)
    ]
    return {"by_length": by_length, "by_depth": by_depth}


# What a record must say, of an experiment whose scores are not the point.
NOTHING = {
    "passkey": of_passkeys({512: 0.0}, 1),
    "ruler": {"lengths": {}, "average": score(0), "tasks": {}},
    "longbench_e": {"buckets": {}, "averages": {}, "tasks": {}},
    "open_llm": {"tasks": {}, "by_document": {}},
    "loss_by_position": {"buckets": []},
    "finetune": {"tokens": 0},
}


class Recorder:
    """Records in memory; :meth:`results` writes all that there are into a folder of its own."""

    def __init__(self, folder: Path, **facts):
        self.folder = folder
        self.records = {}
        self._count = itertools.count()
        self.facts = {
            "title": "A Model",
            "model": "a-model",
            "geometry": {"head_dim": 64, "base": 100000.0, "context_length": LENGTH},
            "factors": [2, 4],
            "n_hat": {"2": 28},
            "ablated": ["n_hat", "intervals", "attention_factor"],
        } | facts

    def add(
        self,
        experiment,
        method,
        scores=None,
        factor=2,
        options=None,
        seed=None,
        comparable=("data",),
        data_facts=None,
        **run,
    ) -> dict:
        """A record, whose file is named after its method; of a fine-tuned model where there is a
        seed."""
        run |= {"method": method, "factor": factor, "options": options or {}}
        if seed is not None:
            run["training"] = {"seed": seed} | run.get("training", {})
        record = {"run": run, "comparable": list(comparable), "scores": scores or {}}
        if data_facts is not None:
            record["data_facts"] = data_facts
        self.records[f"{experiment}/{method}_{len(self.records):03d}.json"] = record
        return record

    def losses(self, method, books, starts=(0, LENGTH), length=2 * LENGTH, **more) -> None:
        """A record of losses by position.

        Args:
            books: by title the losses of a book's blocks, of which each book has as many.
            starts: of the ranges.
        """
        ends = (*starts[1:], length)
        ranges = [{"start": start, "end": end} for start, end in zip(starts, ends)]
        block = length // len(next(iter(books.values())))
        scores = {"block": block, "blocks": books, "ranges": ranges, "buckets": ranges}
        read = {"data": dict.fromkeys(books, "hash"), "length": length}
        self.add("loss_by_position", method, scores, **read | more)

    def keys(self, method, books, distances=(1, LENGTH + 1), found=None, **more) -> None:
        """A record of keys in books.

        Args:
            books: by title the nats of a book's keys, one at each distance to the question.
            found: by title whether each key is found; None if all are.
        """
        found = found or {title: [True] * len(nats) for title, nats in books.items()}
        keys = {
            title: [
                {"place": 0, "distance": distance, "nats": each, "found": said}
                for distance, each, said in zip(distances, nats, found[title], strict=True)
            ]
            for title, nats in books.items()
        }
        starts = (0, LENGTH) if max(distances) > LENGTH else (0,)
        ranges = [{"start": start, "nats": 0.0} for start in starts]
        read = {"data": dict.fromkeys(books, "hash"), "keys": len(distances), "dtype": "float32"}
        self.add("needles", method, {"keys": keys, "ranges": ranges}, **read | more)

    def results(self, name: str = "mine") -> Results:
        """What is in memory, written out."""
        folder = self.folder / str(next(self._count))
        write(folder / name / "model.json", self.facts)
        for file, record in self.records.items():
            experiment, _, run = file.partition("/")
            path = records.folder(folder, name, experiment) / run
            whole = record | {
                "run": {"experiment": experiment} | record["run"],
                "scores": NOTHING.get(experiment, {}) | record["scores"],
                "environment": {"seconds": 1.0},
            }
            write_record(path, whole)
        return Results.of(name, folder)

    def everything(self, method, options=None, factor=2, seed=None, better=0.0) -> None:
        """A record of each experiment; a method that is `better` scores more and loses less by
        that."""

        setting = {"factor": factor, "options": options, "seed": seed}

        def add(experiment, scores, **run):
            self.add(experiment, method, scores, **setting, **run)

        far = LENGTH * max(factor, 2)  # also of a model as it is, whose factor is 1
        nats = 3.0 - better
        self.losses(method, {"A Book": [nats] * (far // 1024)}, length=far, **setting)
        self.keys(method, {"A Book": [nats, nats]}, length=far, **setting)
        losses = {length: {"A Book": nats} for length in (LENGTH, far)}
        add("perplexity", **on_texts(losses, stride=[LENGTH // 2, LENGTH]))
        found = score(50 + better)
        lengths = {str(LENGTH): found, str(far): found}
        tasks = {length: {"vt": found, "cwe": found} for length in lengths}
        ruler = {"lengths": lengths, "average": found, "tasks": tasks}
        add("ruler", ruler, tasks=["vt", "cwe"], samples=3)
        add("passkey", of_passkeys({LENGTH: 0.5, far: 0.5}, 4))
        documents = dict.fromkeys(TASKS, [0.0, 1.0, min(better, 1.0)] * 2)
        names = dict.fromkeys((*TASKS, "average"), found)
        add("open_llm", {"tasks": names, "by_document": documents})
        buckets = dict.fromkeys(("0-4k", "4-8k", "8k+"), found)
        averages = {"Avg.": found}
        add("longbench_e", {"buckets": buckets, "averages": averages, "tasks": {"qasper": {}}})

    def learned(self, method: str, factor=2, seeds=(0, 1), better=0.0, converged=True) -> None:
        """Factors that were learned from a method's by each seed, and their loss by position."""
        pairs = self.facts["geometry"]["head_dim"] // 2
        point = dict.fromkeys(("within", "beyond", "all"), score(3.0, 0.1))
        for seed in seeds:
            name = f"from={method}_s={factor}_seed={seed}"
            run = {"method": method, "factor": factor, "options": {}, "seed": seed}
            scores = {
                "steps_made": 130,
                "factors": np.linspace(1, factor + 0.1 * seed, pairs).tolist(),
                "attention_factor": 1.05,
                "converged": converged,
                "curve": [{"step": 0, "tokens": 0} | point],
            }
            self.records[f"learned/{name}.json"] = {"run": run, "scores": scores}
            self.everything(
                "factors", {"file": f"/somewhere/{name}.json"}, factor, better=better + 0.01 * seed
            )
