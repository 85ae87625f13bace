"""Which method suits a model: the loss within L and beyond it, under every method that needs no training.

    python -m experiments.best --model tiny --factor 2 --parts 8
    python -m experiments.extend --model PATH_OR_NAME --factor 2 --method best --text FILES --output DIR

The first L' tokens of each text are scored. Of the methods that are not told apart from the one with the least loss
beyond L, the simplest is taken: the one that config.json states in the fewest numbers, which are the parameters of a
stock RoPE type, or else a factor for each pair. The second command extends the model by it. The record is in
build/own/results/.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator

import numpy as np

from core import rope
from core.errors import InputError
from core.extend import extend
from core.huggingface.rotation import skeleton
from eval.intervals import LEAST_TEXTS, students_half
from eval.position_loss import position_losses
from experiments.base_models.model import Model, papers_n_hat
from experiments.kit import command_line, processes, records, texts
from experiments.kit.experiment import Experiment

BEST = "best"  # where a method's name is asked for


class Best(Experiment):
    __doc__ = __doc__
    name = BEST
    methods = None

    def __init__(self, given) -> None:
        given.method = None
        given.results = given.results or records.OWN
        super().__init__(given)
        if self.base.training:
            method = self.base.training["method"]
            raise InputError(
                f"{given.model} was fine-tuned to fit {method}; give the model before, or --method {method}."
            )

    @staticmethod
    def add_options(parser) -> None:
        texts.add_arguments(parser)

    def settings(self) -> dict:
        return {"length": self.extended_length, "methods": list(self.candidates)} | texts.bos_for_record(self.bos)

    def suffix(self) -> str:
        return f"_texts={records.identity(**self.data())}"

    def data(self) -> dict:
        return {book.title: book.sha256 for book in self.books}

    @functools.cached_property
    def books(self) -> list[texts.Book]:
        return texts.chosen(self.arguments)

    @functools.cached_property
    def candidates(self) -> dict[str, dict]:
        """{"method", "options", "numbers"} of every setting that needs no training and that this model can state."""
        geometry, model = self.base.geometry, skeleton(self.base.config)
        rope.scale(geometry, rope.ORIGINAL, self.factor)  # refuses a factor that adds no token
        settings = Model("", self.base.name, geometry, n_hat=papers_n_hat(geometry)).comparison(self.factor)
        found = {}
        for method, options in settings:
            try:
                extend(model, method, self.factor, **options)
            except InputError as error:
                print(f"note: {method} is left out: {error}", file=sys.stderr)
                continue
            stated = {"method": method, "options": options, "numbers": numbers(geometry, method, self.factor, options)}
            found[records.run_name(method, self.factor, options)] = stated
        return found

    def samples(self) -> dict[str, tuple]:
        """(the setting's name, the text's tokens), setting by setting."""
        tokens = [texts.sequence(self.base.tokenizer, book, self.extended_length, self.bos) for book in self.books]
        return {f"{name} {i}": (name, ids) for name in self.candidates for i, ids in enumerate(tokens)}

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, list[float]]]:
        model, applied = self.loaded, None
        for key in keys:
            name, tokens = self.content[key]
            if name != applied:
                extend(model, self.candidates[name]["method"], self.factor, **self.candidates[name]["options"])
                applied = name
            losses = position_losses(model, tokens)[-self.extended_length :]
            parts = losses[: self.context_length], losses[self.context_length :]
            yield key, [round(part.mean(), 6) for part in parts]

    def summary(self, run: dict, values: dict[str, list[float]]) -> dict:
        rows = []
        for name, setting in self.candidates.items():
            within, beyond = zip(*(values[f"{name} {i}"] for i in range(len(self.books))))
            rows.append(setting | {"within": within, "beyond": beyond})
        return {"ranking": ranked(rows)}

    def run(self) -> None:
        """Measure what is not yet recorded, and print the ranking."""
        super().run()
        if processes.rank()[0] == 0:
            print(f"\n{self.told()}\n")

    @property
    def ranking(self) -> list[dict]:
        """The record's."""
        name = f"s={self.factor:g}{self.suffix()}"
        return records.read(records.path(self.results, self.base.folder, self.name, name))["ranking"]

    @property
    def taken(self) -> dict:
        """The setting that is taken."""
        return taken(self.ranking)

    def told(self) -> str:
        """The ranking, and what is taken of it, as Markdown."""
        return told(self.ranking, self.context_length, self.extended_length)


def numbers(geometry: rope.RopeGeometry, method: str, factor: float, options: dict) -> int:
    """In how many numbers config.json states a scaling: those of a stock RoPE type, else a factor for each pair."""
    scaling = rope.scale(geometry, method, factor, **options)
    return len(scaling.stock) - 1 if scaling.stock else geometry.pairs + (scaling.attention_factor != 1)


def ranked(rows: list[dict]) -> list[dict]:
    """Settings by their mean loss beyond L, each with its difference from the least, paired by text.

    The difference has Student's 95 % interval over texts. A setting whose interval holds zero is level with the best.
    Below LEAST_TEXTS texts there is no interval, and none is.

    Args:
        rows: {"numbers", "within", "beyond", …}; the last two are the loss of each text [texts].
    """
    rows = sorted(rows, key=lambda row: np.mean(row["beyond"]))
    for row in rows:
        gaps = np.subtract(row["beyond"], rows[0]["beyond"])
        mean, half = float(gaps.mean()), students_half(gaps) if len(gaps) >= LEAST_TEXTS else None
        low, high = (None, None) if half is None else (mean - half, mean + half)
        row["difference"] = {"mean": mean, "low": low, "high": high, "n": len(gaps)}
        row["level"] = row is rows[0] or (low is not None and low <= 0)
    return rows


def taken(rows: list[dict]) -> dict:
    """Of a ranking, the simplest setting that is level with the best: the one stated in the fewest numbers."""
    return min((row for row in rows if row["level"]), key=lambda row: row["numbers"])


def told(rows: list[dict], context_length: int, length: int) -> str:
    """A ranking and what is taken of it, as Markdown."""
    lines = [f"{'method':24} | within L | beyond L | minus the least | numbers", "--- | --- | --- | --- | ---"]
    for row in rows:
        gap, within, beyond = row["difference"], np.mean(row["within"]), np.mean(row["beyond"])
        interval = "" if gap["low"] is None else f" [{gap['low']:+.4f}, {gap['high']:+.4f}]"
        difference = "–" if row is rows[0] else f"{gap['mean']:+.4f}{interval}"
        lines.append(f"{named(row):24} | {within:8.4f} | {beyond:8.4f} | {difference:26} | {row['numbers']}")
    table, count = "\n".join(f"| {line} |" for line in lines), len(rows[0]["beyond"])
    best, of = named(rows[0]), f"{count} text{'s' * (count > 1)} of {length:,} tokens, L = {context_length:,}"
    if count < LEAST_TEXTS:
        why = f"Fewer than {LEAST_TEXTS} texts give no interval, so {best} is taken, whose loss beyond L is least."
    elif others := ", ".join(named(row) for row in rows[1:] if row["level"]):
        why = f"Not told apart from {best}: {others}. {named(taken(rows))} is taken, stated in the fewest numbers."
    else:
        why = f"Every other method is told apart from {best}, which is taken."
    return (
        f"{table}\n\nMean loss in nats per token within L and beyond it, over {of}. Brackets: Student's 95 % interval "
        "over texts. Numbers: how many of them state the method in config.json, those of a stock type or a factor for "
        f"each pair. {why}"
    )


def named(row: dict) -> str:
    return " ".join([row["method"], *(f"{name}={value}" for name, value in row["options"].items())])


main = Best.main

if __name__ == "__main__":
    command_line.run(main)
