"""The loss of a language model at every position of one long text."""

from __future__ import annotations

from unittest import mock

import numpy as np
import torch
from transformers import PreTrainedModel

from core.errors import NonFiniteError
from core.huggingface.rotation import at_length

CHUNK = 1024


@torch.inference_mode()
def position_losses(
    model: PreTrainedModel, tokens: torch.Tensor, scored: int | None = None
) -> np.ndarray:
    """−ln p(token m+1 | tokens 0 … m) in nats for the last `scored` positions m.

    The text is read in one causal pass without a cache. Logits exist for 1024 positions at a time:
    for each such part the model runs again, its decoder giving what it gave in the pass, so that
    whatever a model does to its logits is done.

    Args:
        model: a causal language model.
        tokens: token ids, int64 [length + 1].
        scored: None for all positions.

    Returns:
        float64 array [scored].

    Raises:
        NonFiniteError: a loss is not finite; the message names the first such position.
    """
    inputs = tokens[:-1].to(model.device)
    targets = tokens[1:].to(model.device)
    first = 0 if scored is None else len(inputs) - scored
    losses = []
    with at_length(model, len(inputs)):
        read = model.base_model(inputs[None], use_cache=False)
        for start in range(first, len(inputs), CHUNK):
            part = slice(start, start + CHUNK)
            of_part = type(read)(last_hidden_state=read.last_hidden_state[:, part])
            with mock.patch.object(model.base_model, "forward", return_value=of_part):
                logits = model(inputs[None, part], use_cache=False).logits[0]
            losses.append(_token_losses(logits, targets[part], start))
    return np.concatenate(losses)


def _token_losses(logits: torch.Tensor, targets: torch.Tensor, start: int) -> np.ndarray:
    """The cross entropy of each row, float64 [rows]; the first row is of position `start`."""
    losses = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
    losses = losses.double().cpu().numpy()
    if not np.isfinite(losses).all():
        position = start + int(np.flatnonzero(~np.isfinite(losses))[0])
        raise NonFiniteError(f"the loss at position {position} is not finite")
    return losses
