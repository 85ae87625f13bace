"""The loss of a language model at every position of one long text."""

from __future__ import annotations

import numpy as np
import torch
from tqdm import tqdm
from transformers import DynamicCache, PreTrainedModel

from core.clex import at_length
from core.errors import NonFiniteError
from eval.kv_cache import keeps_tokens

CHUNK = 1024


@torch.inference_mode()
def position_losses(model: PreTrainedModel, tokens: torch.Tensor, title: str = "") -> np.ndarray:
    """−ln p(token m+1 | tokens 0 … m) in nats for every position m.

    The text is read in chunks of 1024 tokens over a key-value cache, so that logits exist for one
    chunk at a time. Attention still reaches back to the first token. A model that keeps more than
    keys and values reads it whole.

    Args:
        model: a causal language model.
        tokens: token ids, int64 [length + 1].
        title: of a progress bar in chunks; empty for none.

    Returns:
        float64 array [length].

    Raises:
        NonFiniteError: a loss is not finite; the message names the first such position.
    """
    inputs, targets = tokens.to(model.device)[:-1], tokens.to(model.device)[1:]
    with at_length(model, len(inputs)):
        if not keeps_tokens(model):
            return token_losses(model(inputs[None], use_cache=False).logits[0], targets)
        cache, losses = DynamicCache(config=model.config), []
        for start in tqdm(
            range(0, len(inputs), CHUNK), title, unit="chunk", leave=False, disable=not title
        ):
            part = slice(start, start + CHUNK)
            logits = model(inputs[None, part], past_key_values=cache, use_cache=True).logits[0]
            losses.append(token_losses(logits, targets[part], start))
    return np.concatenate(losses)


def token_losses(logits: torch.Tensor, targets: torch.Tensor, start: int = 0) -> np.ndarray:
    """The cross entropy of each row, float64 [rows]; NonFiniteError counts positions from
    `start`."""
    loss = (
        torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
        .double()
        .cpu()
        .numpy()
    )
    if not np.isfinite(loss).all():
        position = start + int(np.flatnonzero(~np.isfinite(loss))[0])
        raise NonFiniteError(f"the loss at position {position} is not finite")
    return loss
