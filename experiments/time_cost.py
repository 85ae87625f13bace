"""Training-step and inference time of every method, normalised to PI (the paper's time table).

    python -m experiments.time_cost --model smollm2 --length 2048

Every round times every method once, in random order, so that a slow phase of the machine affects
all methods alike. The ratio to PI is taken within each round, and the record holds its median over
the rounds with a 95 % interval.

PI is timed twice per round. The ratio of its second time to its first shows how much the clock
alone varies. Rounds continue until that ratio is known to within --precision, whatever the other
methods' ratios are.

With --checkpointing, a training step saves memory as fine-tuning does at the paper's lengths:
activations are recomputed, and the logits of all tokens are never held at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import quantile_test
from tqdm import tqdm

import records
from core import files, rope
from core.discovery import later
from core.errors import InputError
from core.setting import Setting
from eval.intervals import LEAST_FOR_MEDIAN
from experiments.kit import command_line
from experiments.kit.command import ALL, Command, asked_by_suite
from experiments.kit.command_line import count, number, option, two_or_more
from experiments.kit.engine import Engine

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel

    from experiments.training import loss as training_loss
else:
    torch, training_loss = later("torch", "experiments.training.loss")

LEAST = 10  # the least number of rounds

Work = Callable[["PreTrainedModel", "Tensor"], None]


class TimeCost(Command):
    """Methods are timed side by side, and all go into one record. A killed run begins anew, so that
    all rounds are of one machine in one state."""

    name = "time_cost"
    divides = False
    unit = "time of a training step and of a forward pass, as multiples of PI's"

    @staticmethod
    def add_arguments(parser: command_line.Parser) -> None:
        command_line.add_method_arguments(parser, several=ALL)
        command_line.add_dtype_argument(parser)
        option(parser, "--length", two_or_more, "TOKENS", "tokens per sequence", 2048)
        option(parser, "--repeats", count, "N", "at most N rounds", 1000)
        option(
            parser,
            "--precision",
            number,
            "P",
            "stop when the ratio of PI to itself is known to within P",
            0.01,
        )
        parser.add_argument(
            "--checkpointing",
            action="store_true",
            help="for long sequences: recompute activations in the training step and never hold "
            "all logits",
        )

    def run(self) -> None:
        """Time rounds until PI's ratio to itself is known in both phases, or up to --repeats
        rounds."""
        self.join()
        given = self.arguments
        engine = Engine(self)
        compared = {Setting.make(*each, self.factor).run_name(): each for each in self.comparison()}
        reference = Setting(rope.TIME_REFERENCE, (), self.factor).run_name()
        if reference not in compared:
            raise InputError(
                f"times are relative to {rope.TIME_REFERENCE}; put it among the methods of "
                f"--method."
            )
        geometry = self.model.geometry
        run = {
            "scale": self.model.folder,
            "experiment": self.name,
            "factor": self.factor,
            "methods": list(compared),
            "model": self.model.identity,
            "dtype": engine.dtype,
            "length": given.length,
            "repeats": given.repeats,
            "precision": given.precision,
            **({"checkpointing": True} if given.checkpointing else {}),
            "computed": {
                name: records.of_method(geometry, method, self.factor, options)
                for name, (method, options) in compared.items()
            },
        }
        name = f"s={self.factor:g}"
        self.check_place(name)
        file = self.to_measure(run, name)
        if file is None:
            return
        compared[f"{reference}_again"] = compared[reference]
        model = engine.extended(None, {})
        vocabulary = model.config.get_text_config().vocab_size
        seeded = torch.Generator().manual_seed(0)
        tokens = torch.randint(vocabulary, (1, given.length), generator=seeded).to(model.device)
        works = {"train": training_step(model, given.checkpointing), "test": _forward}
        time_round(engine, compared, works, tokens, 0)  # warms up
        rounds: list[dict] = []
        with (
            files.lock(file),  # two that time at once would disturb each other
            tqdm(total=given.repeats, unit="round", desc=f"at most {given.repeats}") as bar,
        ):
            for turn in range(1, given.repeats + 1):
                rounds.append(time_round(engine, compared, works, tokens, turn))
                bar.update()
                rows = scores(rounds, compared, reference)
                widths = [row["high"] - row["low"] for row in rows if row["again"]]
                if turn >= LEAST and max(widths) <= 2 * given.precision:
                    break
        seconds = sum(sum(phases.values()) for row in rounds for phases in row.values())
        self.finish(
            file, run, scores={"rows": rows}, seconds=seconds, of_machine=engine.of_machine()
        )

    def in_suite(self, name: str) -> bool:
        """At the factor of the suite."""
        return asked_by_suite(self, "factor")

    def rows(self, scores: dict) -> Iterator[tuple[str, ...]]:
        for row in scores["rows"]:
            ends = f"{row['low']:.3f}", f"{row['high']:.3f}"
            enough = row["rounds"] >= LEAST_FOR_MEDIAN
            between = "[{}, {}]" if enough else "between {} and {}: too few rounds for an interval"
            yield row["run"], row["phase"], f"{row['relative_to_pi']:.3f}", between.format(*ends)


def time_round(
    engine: Engine, compared: dict, works: dict[str, Work], tokens: Tensor, turn: int
) -> dict[str, dict[str, float]]:
    """Seconds of a training step (forward and backward) and of a forward pass, by method, in random
    order."""
    names = list(compared)
    seconds = {}
    random.Random(turn).shuffle(names)
    for name in names:
        model = engine.extended(*compared[name])
        _forward(model, tokens)  # warm the caches, which extending has cooled
        seconds[name] = {phase: _seconds(work, model, tokens) for phase, work in works.items()}
    return seconds


def scores(rounds: list[dict], compared: dict[str, tuple[str, dict]], reference: str) -> list[dict]:
    """By method and phase: the median seconds, and the median ratio to PI with its 95 % interval by
    order statistics; below LEAST_FOR_MEDIAN rounds the range.

    Args:
        rounds: seconds by method and phase.
        compared: the method and its options by name.
        reference: PI's name.
    """
    rows = []
    for name, (method, options) in compared.items():
        for phase in ("train", "test"):
            seconds = [row[name][phase] for row in rounds]
            ratios = np.divide(seconds, [row[reference][phase] for row in rounds])
            low, high = min(ratios), max(ratios)
            if len(ratios) >= LEAST_FOR_MEDIAN:
                low, high = quantile_test(ratios, q=1, p=0.5).confidence_interval()
            row = {
                "run": name,
                "method": method,
                "options": rope.stated_options(method, options),
                "again": name.endswith("_again"),
                "phase": phase,
                "seconds": float(np.median(seconds)),
                "rounds": len(rounds),
                "relative_to_pi": float(np.median(ratios)),
                "low": float(low),
                "high": float(high),
            }
            rows.append(row)
    return rows


def _seconds(work, model, tokens: Tensor) -> float:
    _finish()
    started = time.perf_counter()
    work(model, tokens)
    _finish()
    return time.perf_counter() - started


def training_step(model, saving: bool) -> Work:
    """Forward and backward, as transformers computes them; to save memory, as fine-tuning does at
    the paper's lengths.

    Other passes of the model stay as they are.
    """
    if saving:
        model.activation_checkpointing_enable({"use_reentrant": False})
        head_loss = training_loss.HeadLoss(model)

    def step(model, tokens: Tensor) -> None:
        model.train()  # CLEX solves its ODE anew in every training step
        if saving:
            loss = head_loss(model, {"input_ids": tokens}, tokens) / tokens.numel()
        else:
            loss = model(tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        model.zero_grad(set_to_none=True)
        model.eval()

    return step


def _forward(model, tokens: Tensor) -> None:
    with torch.inference_mode():
        model(tokens, use_cache=False, logits_to_keep=1)


def _finish() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


main = TimeCost.main

if __name__ == "__main__":
    command_line.run(main)
