"""Training-step and inference time of every method, normalised to PI (the paper's time table).

    python -m experiments.time_cost --model smollm2 --length 2048

Every round times every method once, in random order, so that a slow phase of the machine affects all methods alike. The
ratio to PI is taken within each round, and the record holds its median over the rounds with a 95 % interval.

PI is timed twice per round. The ratio of its second time to its first shows how much the clock alone varies. Rounds
continue until that ratio is known to within --precision, whatever the other methods' ratios are.

With --checkpointing, a training step is the one that fine-tuning uses at the paper's lengths: activations are
recomputed, and the logits of all tokens are never held at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import numpy as np
import torch
from scipy.stats import quantile_test
from tqdm import tqdm

from core import rope
from core.errors import InputError
from core.extend import extend
from experiments.kit import command_line, journal, records
from experiments.kit.base_model import option_contents, options_for_record
from experiments.kit.command_line import count, number, option
from experiments.kit.experiment import Experiment
from experiments.training.loss import HeadLoss

LEAST = 10  # the least number of rounds

Work = Callable[[torch.nn.Module, torch.Tensor], None]


class TimeCost(Experiment):
    """Escapes the common loop: methods are timed side by side, and all go into one record."""

    __doc__ = __doc__
    name = "time_cost"

    @staticmethod
    def add_options(parser) -> None:
        option(parser, "--length", count, "TOKENS", "tokens per sequence", 2048)
        option(parser, "--repeats", count, "N", "at most N rounds", 1000)
        option(parser, "--precision", number, "P", "stop when the ratio of PI to itself is known to within P", 0.01)
        saving = "for long sequences: recompute activations in the training step and never hold all logits"
        parser.add_argument("--checkpointing", action="store_true", help=saving)

    def run(self) -> None:
        given, comparison = self.arguments, self.comparison()
        if given.length < 2:
            raise InputError("--length is below 2; give at least two tokens.")
        if rope.TIME_REFERENCE not in [method for method, _ in comparison]:
            raise InputError(
                f"times are relative to {rope.TIME_REFERENCE}; put {rope.TIME_REFERENCE} among the methods."
            )
        run = {
            "scale": self.base.folder,
            "experiment": self.name,
            "factor": self.factor,
            "methods": [records.run_name(method, self.factor, options) for method, options in comparison],
            "model": self.base.provenance,
            "dtype": given.dtype,
            "length": given.length,
            "repeats": given.repeats,
            "precision": given.precision,
            **({"checkpointing": True} if given.checkpointing else {}),
        }
        for method, options in comparison:
            run |= option_contents(method, options)
        file = self.to_measure(run, f"s={self.factor:g}")
        if file is None:
            return
        place = self.journal_path(file, run["identity"])
        with journal.Journal(place.with_name(f"{place.name}.0.jsonl")) as rounds:
            step = saving_step(self.loaded) if given.checkpointing else plain_step
            timed = Rounds(comparison, self.factor, step, rounds)
            done = timed.run(self.loaded, given.length, given.repeats, given.precision)
        self.finish(run | {"scores": timed.scores(done)}, file, timed.seconds(done))


class Rounds:
    """Seconds of a training step (forward and backward) and of a forward pass of every method, round by round."""

    def __init__(self, comparison: list[tuple[str, dict]], factor: float, step: Work, done: journal.Journal) -> None:
        self.settings = {records.run_name(method, factor, options): (method, options) for method, options in comparison}
        self.reference = next(name for name, (method, _) in self.settings.items() if method == rope.TIME_REFERENCE)
        self.again = f"{self.reference}_again"
        self.settings[self.again] = self.settings[self.reference]
        self.factor, self.done = factor, done
        self.phases = {"train": step, "test": _forward}

    def run(self, model, length: int, repeats: int, precision: float) -> int:
        """Time rounds until PI's ratio to itself is known to `precision` in both phases, or up to `repeats` rounds.

        Returns:
            the number of rounds.
        """
        vocabulary = model.config.get_text_config().vocab_size
        tokens = torch.randint(vocabulary, (1, length), generator=torch.Generator().manual_seed(0)).to(model.device)
        self._round(model, tokens, 0)  # warms up
        with tqdm(total=repeats, unit="round", desc=f"at most {repeats}") as bar:
            for number in range(1, repeats + 1):
                if str(number) not in self.done:
                    self.done.add(str(number), self._round(model, tokens, number))
                bar.update()
                control = [row for row in self.scores(number) if row["run"] == self.again]
                if number >= LEAST and all(row["high"] - row["low"] <= 2 * precision for row in control):
                    return number
        return repeats

    def _round(self, model, tokens: torch.Tensor, number: int) -> dict[str, dict[str, float]]:
        names = list(self.settings)
        random.Random(number).shuffle(names)
        seconds = {}
        for name in names:
            method, options = self.settings[name]
            extend(model, method, self.factor, **options)
            _forward(model, tokens)  # warm the caches, which extending has cooled
            seconds[name] = {phase: _seconds(work, model, tokens) for phase, work in self.phases.items()}
        return seconds

    def scores(self, rounds: int) -> list[dict]:
        """Over the first `rounds`: the median seconds, and the median ratio to PI with its interval."""
        rows = []
        for name in self.settings:
            for phase in self.phases:
                taken, of_pi = (
                    np.array([self.done[str(number)][which][phase] for number in range(1, rounds + 1)])
                    for which in (name, self.reference)
                )
                method, options = self.settings[name]
                row = {
                    "run": name,
                    "method": method,
                    "options": options_for_record(method, options),
                    "again": name == self.again,
                }
                row |= {"phase": phase, "seconds": float(np.median(taken)), "rounds": rounds}
                rows.append(row | _median_ratio(taken / of_pi))
        return rows

    def seconds(self, rounds: int) -> float:
        """The sum of all timed seconds."""
        return sum(sum(row.values()) for n in range(1, rounds + 1) for row in self.done[str(n)].values())


def _median_ratio(values: np.ndarray) -> dict[str, float]:
    """The median with its 95 % interval by order statistics; below six values, too few for that, the range."""
    few = len(values) < 6
    interval = (min(values), max(values)) if few else quantile_test(values, q=1, p=0.5).confidence_interval()
    return {"relative_to_pi": float(np.median(values)), "low": float(interval[0]), "high": float(interval[1])}


def _seconds(work, model, tokens: torch.Tensor) -> float:
    _finish()
    started = time.perf_counter()
    work(model, tokens)
    _finish()
    return time.perf_counter() - started


def plain_step(model, tokens: torch.Tensor) -> None:
    """Forward and backward, as transformers computes them."""
    _train(model, lambda: model(tokens, labels=tokens, use_cache=False).loss)


def saving_step(model) -> Work:
    """A step with recomputed activations and the loss of fine-tuning; other passes of the model stay as they are."""
    model.activation_checkpointing_enable({"use_reentrant": False})
    loss = HeadLoss(model)
    return lambda model, tokens: _train(model, lambda: loss(model, {"input_ids": tokens}, tokens) / tokens.numel())


def _train(model, loss: Callable[[], torch.Tensor]) -> None:
    model.train()  # CLEX solves its ODE anew in every training step
    loss().backward()
    model.zero_grad(set_to_none=True)
    model.eval()


@torch.inference_mode()
def _forward(model, tokens: torch.Tensor) -> None:
    model(tokens, use_cache=False, logits_to_keep=1)


def _finish() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


main = TimeCost.main

if __name__ == "__main__":
    command_line.run(main)
