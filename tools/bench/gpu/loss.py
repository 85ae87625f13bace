"""The loss of LLaMA2-7B's head and its gradients, by Liger, in chunks and plainly: seconds, GB, differences."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from importlib.metadata import version

import torch

from experiments.kit import command_line, load_model
from experiments.training import loss
from tools.bench.gpu import kit


def plain(hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The loss from all logits at once, in float32."""
    logits = torch.nn.functional.linear(hidden, weight).float()
    return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")


def chunked(hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Our loss in chunks of tokens."""
    chunk = max(1, loss.CHUNK_LOGITS // len(weight))
    return loss.chunked_loss(hidden, weight, None, labels, chunk)


def liger(hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Liger's kernel, as training calls it."""
    return loss.summed_loss(hidden, weight, None, labels)


WAYS: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "plain": plain,
    "chunked": chunked,
    "liger": liger,
}


def once(way: Callable, hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The loss and both gradients."""
    hidden.grad = weight.grad = None
    total = way(hidden, weight, labels)
    total.backward()
    return total.detach(), hidden.grad, weight.grad


def main() -> None:
    part, _ = kit.start(__doc__)
    config, device = part.config(1), torch.device(load_model.device())
    dtype = part.dtype(torch.bfloat16)
    weight = (0.02 * torch.randn(config.vocab_size, config.hidden_size, device=device)).to(dtype).requires_grad_()
    for count in (32, 64) if part.toy else (8192, 16384):
        hidden = torch.randn(count, config.hidden_size, device=device).to(dtype).requires_grad_()
        labels = part.tokens(count).to(device)
        exact = {}
        for name, way in WAYS.items():
            what = f"loss and its gradients, {count} tokens"
            if name == "liger" and not loss.uses_liger(device):
                where = "without a GPU" if importlib.util.find_spec("liger_kernel") else "not installed"
                part.add(what, where, "", name)
                continue

            work = partial(once, way, hidden, weight, labels)
            seconds, peak = kit.timed(work)
            versions = {"liger_kernel": version("liger_kernel")} if name == "liger" else {}
            part.add(what, seconds, "s", name, **versions)
            part.add(what, peak, "GB", name, **versions)
            exact = exact or dict(zip(("the loss", "d hidden", "d weight"), work()))
            for (of, value), own in zip(exact.items(), work()):
                apart = (own.float() - value.float()).norm() / value.float().norm()
                part.add(f"{of}, {count} tokens, relative distance to plain", float(apart), "", name, **versions)
            hidden.grad = weight.grad = None


if __name__ == "__main__":
    command_line.run(main)
