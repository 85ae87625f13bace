"""Learn the factors of a frozen model by gradient descent: the loop, its stop rule, and its
journal.

Every step and every evaluation is one line of the journal. A step's line holds the parameters and
the optimizer's state after the step. So a killed run replays its lines and continues, to the last
bit on the same number of threads.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from core import extend
from core.beyond import learned_factors
from core.errors import NonFiniteError
from core.geometry import RopeGeometry, RopeScaling
from core.rope import ORIGINAL
from eval import perplexity
from eval.intervals import mean_interval
from experiments.beyond.blocks import divisions
from experiments.kit import texts
from experiments.training.corpus import PackedSequences
from experiments.training.loss import HeadLoss
from records.journal import Journal

PATIENCE = 5  # the held-out loss must improve within so many evaluations,
LEAST = 0.001  # by more than so many nats
BETAS = (0.9, 0.99)


@dataclass(frozen=True)
class Learning:
    """How factors are learned.

    Attributes:
        steps: the most steps.
        batch: sequences per step.
        learning_rate: Adam's learning rate until the loss is flat, in moves of
            :class:`core.beyond.learned_factors.Factors`.
        evaluate_every: steps between evaluations.
    """

    steps: int
    batch: int
    learning_rate: float
    evaluate_every: int

    @property
    def falling(self) -> int:
        """The number of steps over which the learning rate falls to zero."""
        return min(PATIENCE * self.evaluate_every, self.steps)

    def facts(self) -> dict:
        """The settings as a record states them."""
        return asdict(self) | {
            "betas": list(BETAS),
            "patience": PATIENCE,
            "least_improvement": LEAST,
        }


def is_flat(losses: list[float]) -> bool:
    """Whether the least of the last PATIENCE losses is at most LEAST below the least of the earlier
    ones."""
    return len(losses) > PATIENCE and min(losses[:-PATIENCE]) - min(losses[-PATIENCE:]) <= LEAST


def held_out(
    tokenizer, library: list[texts.Book], count: int, length: int, bos: Sequence[int] = ()
) -> list[tuple[str, Tensor]]:
    """`count` evenly spaced sequences with `length` tokens to score from the second half of each
    text, with its title.

    Args:
        bos: the ids before each sequence.

    Raises:
        InputError: a text is too short.
    """
    sequences = []
    for book in library:
        starts = np.linspace(len(book.text) // 2, len(book.text), count + 1).astype(int)
        for number, (start, end) in enumerate(pairwise(starts), 1):
            excerpt = texts.Book(
                f"{book.title}, second half, part {number} of {count}", book.text[start:end]
            )
            (sequence,) = texts.sequences(tokenizer, [excerpt], length, bos).values()
            sequences.append((book.title, sequence))
    return sequences


class Learner:
    """Learns the factors of one model.

    Args:
        model: the model; its weights are frozen.
        start: the scaling at which the factors start.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        geometry: RopeGeometry,
        start: RopeScaling,
        settings: Learning,
        journal: Journal,
    ) -> None:
        self.model = model
        self.geometry = geometry
        self.settings = settings
        self._factors = learned_factors.Factors(geometry, start)
        self._journal = journal
        self._optimizer = torch.optim.Adam([self._factors.moves], betas=BETAS)

    def learn(
        self, data: PackedSequences, sequences: list[tuple[str, Tensor]], length: int
    ) -> dict:
        """Learn to the end, and return the results for a record, with `losses` and `gradient_norms`
        by step.

        Args:
            data: training sequences of `length` tokens.
            sequences: held-out sequences, with titles; the last `length` tokens of each are scored.
        """
        settings = self.settings
        curve: list[dict] = []
        steps: list[dict] = []
        converged = False
        end = None  # is known once the learning rate falls

        def evaluate() -> None:
            step = len(steps)
            point = self._once(f"evaluation {step}", lambda: self._evaluate(sequences, length))
            curve.append({"step": step, "tokens": step * settings.batch * length, **point})

        # Start from a model without scaling, whatever its configuration said before.
        extend.extend(self.model, ORIGINAL, length / self.geometry.context_length)
        with (
            learned_factors.learning(self.model, self._factors),
            tqdm(total=settings.steps, desc="learning", unit="step") as bar,
        ):
            head = HeadLoss(self.model)
            while (step := len(steps)) != end:
                if step % settings.evaluate_every == 0:
                    evaluate()
                    if end is None:
                        converged = is_flat([point["all"]["mean"] for point in curve])
                if end is None and (converged or step >= settings.steps - settings.falling):
                    end = step + settings.falling
                    bar.total = end
                left = 1 if end is None else (end - step) / settings.falling
                rate = settings.learning_rate * left
                state = self._once(f"step {step}", partial(self._step, head, data, step, rate))
                self._restore(state, step + 1)
                steps.append(state)
                bar.set_postfix(
                    loss=f"{state['loss']:.4f}",
                    held_out=f"{curve[-1]['all']['mean']:.4f}",
                    refresh=False,
                )
                bar.update(1)
            evaluate()
        factors, attention_factor = self._factors.values
        seconds = sum(entry.pop("seconds") for entry in (*curve, *steps))
        return {
            "steps_made": len(steps),
            "factors": factors,
            "attention_factor": attention_factor,
            "curve": curve,
            "losses": [step["loss"] for step in steps],
            "gradient_norms": [step["gradient_norm"] for step in steps],
            "converged": converged,
            "seconds": round(seconds, 1),
        }

    def _once(self, key: str, work: Callable[[], dict]) -> dict:
        """The journal's entry under a key; if there is none, do the work and journal it with its
        seconds."""
        if key not in self._journal.entries:
            started = time.perf_counter()
            entry = work()
            self._journal.add(key, entry | {"seconds": round(time.perf_counter() - started, 3)})
        return dict(self._journal.entries[key])

    def _step(self, head: HeadLoss, data: PackedSequences, step: int, rate: float) -> dict:
        moves = self._factors.moves
        total = 0.0
        batch = self.settings.batch
        moves.grad = None
        for index in range(step * batch, (step + 1) * batch):  # one at a time, to save memory
            tokens = data[index]["input_ids"][None].to(self.model.device)
            with _recomputing(self.model):
                loss = head(self.model, {"input_ids": tokens}, tokens) / (
                    batch * (tokens.shape[1] - 1)
                )
                loss.backward()
            total += loss.item()
        norm = moves.grad.norm().item()
        if not (math.isfinite(total) and math.isfinite(norm)):
            raise NonFiniteError(f"step {step + 1}: the loss or its gradient is not finite")
        self._optimizer.param_groups[0]["lr"] = rate
        self._optimizer.step()
        state = {"moves": moves.detach(), **self._optimizer.state[moves]}
        return {"loss": total, "gradient_norm": norm} | {
            name: state[name].tolist() for name in _STATE
        }

    def _restore(self, entry: dict, steps: int) -> None:
        """Restore the state at the end of a step."""
        state = {name: torch.tensor(entry[name]) for name in _STATE}
        with torch.no_grad():
            self._factors.moves.copy_(state.pop("moves"))
        self._optimizer.state[self._factors.moves] = {"step": torch.tensor(float(steps)), **state}

    def _evaluate(self, sequences: list[tuple[str, Tensor]], length: int) -> dict:
        """The held-out loss in nats per token within L, beyond L and overall, with intervals over
        blocks of tokens."""
        block, _ = divisions(self.geometry.context_length, length)
        losses = np.array(
            [perplexity.position_losses(self.model, ids, length) for _, ids in sequences]
        )
        losses = losses.reshape(len(sequences), -1, block).mean(-1)
        first = self.geometry.context_length // block
        ranges = {"within": losses[:, :first], "beyond": losses[:, first:], "all": losses}
        return {name: mean_interval(values.ravel()) for name, values in ranges.items()}


_STATE = "moves", "exp_avg", "exp_avg_sq"  # the parameters and their moments in Adam


@contextlib.contextmanager
def _recomputing(model: PreTrainedModel) -> Iterator[None]:
    """Inside the context, each layer's activations are recomputed in the backward pass, to save
    memory."""
    every = model.modules()
    layers = [module for module in every if isinstance(module, GradientCheckpointingLayer)]
    model.activation_checkpointing_enable({"use_reentrant": False})
    # transformers recomputes only in training mode. The modules inside stay in evaluation mode,
    # without dropout.
    for layer in layers:
        layer.training = True
    try:
        yield
    finally:
        for layer in layers:
            layer.training = False
