"""The tokens that a long context helps to predict: the key tokens of LongPPL (Fang et al. 2025, arXiv 2410.23771).

A model with a long context, the evaluator, reads a text twice: with all of it before each token, and with a short
context. A token is a key token if its loss falls by more than 2 nats with the long context, to less than 2 nats. The
perplexity of any model over these tokens tells whether it uses its context. Perplexity over all tokens hardly does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from eval.perplexity import window_losses, windows


def key_tokens(
    evaluator: PreTrainedModel,
    tokens: torch.Tensor,
    long: int,
    short: int,
    step: int,
    before: Sequence[int] = (),
    gain: float = 2.0,
    most: float = 2.0,
) -> np.ndarray:
    """Which tokens of a text are key tokens, bool [tokens].

    The authors' evaluator reads the whole text. Here it reads windows of `long` tokens, each with half of the one
    before, so that no evaluator has to read more than it was trained for; a text of up to `long` tokens is whole.

    Args:
        evaluator: a causal language model.
        tokens: the text's ids, int64 [tokens].
        long: tokens of the long context; one beyond the first window has at least half of them before it.
        short: tokens of the short context; those of a window of `step` tokens begin at the same place, so a token has
            between `short` and `short` + `step` before it. The first `short` tokens are no key tokens.
        before: the ids before every window, such as BOS.
        gain: α, by how many nats the loss has to fall.
        most: −β, what it has to fall below, in nats.
    """

    def losses(length: int, stride: int) -> np.ndarray:
        spans = windows(len(tokens), length + len(before), stride, len(before))
        scored = np.concatenate(list(window_losses(evaluator, tokens, spans, before)))
        return np.pad(scored, (len(tokens) - len(scored), 0), constant_values=np.inf)  # nothing predicts the first

    whole, near = losses(long, max(long // 2, 1)), losses(short + step, step)
    with np.errstate(invalid="ignore"):
        key = (near - whole > gain) & (whole < most)
    key[:short] = False
    return key
