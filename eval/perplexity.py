"""The loss of a language model at every position of a long text, and its sliding-window perplexity
(Press et al. 2022).

A window of `length` tokens moves by `stride` tokens. Each window scores only the tokens that no
earlier one scored. So after the first window, every token is predicted from at least length −
stride tokens before it. Two conventions of averaging are in use:

- ``"token"``: exp of the mean loss over all scored tokens, of equal weight;
- ``"window"``: exp of the mean over windows of each window's mean loss (the script published with
  YaRN). The first window, which scores `length` tokens, then has no more weight than the others,
  which score `stride`.

Every window begins with BOS where it is asked for. BOS is one of the window's `length` tokens and
is not scored; the text's first token then is, as BOS predicts it. YaRN's script (jquesnelle/yarn,
eval/perplexity.py) does the same wherever the tokenizer has a BOS token. Without BOS, a window
holds the text's tokens and nothing else.
"""

from collections.abc import Sequence
from unittest import mock

import numpy as np
import torch
from transformers import Cache, PreTrainedModel

from core.errors import InputError, NonFiniteError
from core.huggingface.rotation import at_length
from eval.intervals import resampled_interval, resampled_ratio

CHUNK = 1024  # positions whose logits are held at a time


@torch.inference_mode()
def position_losses(
    model: PreTrainedModel,
    tokens: torch.Tensor,
    scored: int | None = None,
    cache: Cache | None = None,
    room: int = 0,
    predicted: torch.Tensor | None = None,
) -> np.ndarray:
    """−ln p(token m+1 | tokens 0 … m) in nats for the last `scored` positions m.

    The text is read in one causal pass. Logits exist for 1024 positions at a time: for each such
    part the model runs again, its decoder giving what it gave in the pass, so that whatever a model
    does to its logits is done.

    Args:
        model: a causal language model.
        tokens: token ids, int64 [length + 1].
        scored: None for all positions; 0 for none, of a text that is only read.
        cache: an empty one, which then holds the text without its last token; None keeps nothing.
        room: how many tokens will follow in the cache, where RoPE follows the input's length.
        predicted: the id whose loss is wanted at each position, int64 [length]; None for the next
            of the text.

    Returns:
        float64 array [scored].

    Raises:
        NonFiniteError: a loss is not finite; the message names the first such position.
    """
    inputs = tokens[:-1].to(model.device)
    targets = tokens[1:] if predicted is None else predicted
    first = 0 if scored is None else len(inputs) - scored
    losses = [np.empty(0)]
    with at_length(model, len(inputs) + room):
        kept = {} if cache is None else {"past_key_values": cache}
        read = model.base_model(inputs[None], use_cache=cache is not None, **kept)
        for start in range(first, len(inputs), CHUNK):
            part = slice(start, start + CHUNK)
            decoded = type(read)(last_hidden_state=read.last_hidden_state[:, part])
            with mock.patch.object(model.base_model, "forward", return_value=decoded):
                logits = model(inputs[None, part], use_cache=False).logits[0]
            wanted = targets[part].to(logits.device)
            of_part = torch.nn.functional.cross_entropy(logits.float(), wanted, reduction="none")
            losses.append(of_part.double().cpu().numpy())
    whole = np.concatenate(losses)
    bad = np.flatnonzero(~np.isfinite(whole))
    if bad.size:
        raise NonFiniteError(f"the loss at position {first + bad[0]} is not finite")
    return whole


def windows(tokens: int, length: int, stride: int, before: int = 0) -> list[tuple[int, int, int]]:
    """(begin, end, first scored position) of every window over a text of `tokens` tokens.

    Positions begin … end−1 are read, and the tokens at `first scored` … end−1 are scored. If there
    is nothing before a window, the text's first token is never scored, because nothing predicts it.
    The last window ends with the text.

    Args:
        before: how many of a window's `length` tokens stand before those of the text, such as BOS.

    Raises:
        InputError: a window of one token, the stride is not below the window's length, or it leaves
            out tokens.
    """
    if length < 2:
        raise InputError(
            f"a window of {length} token predicts no other; give a length of 2 or more."
        )
    if stride > length - max(before, 1):
        raise InputError(
            f"the stride is {stride} and the window {length} tokens; the stride must be shorter."
        )
    spans = []
    scored = int(not before)
    for begin in range(0, tokens, stride):
        end = min(begin + length - before, tokens)
        spans.append((begin, end, scored))
        scored = end
        if end == tokens:
            break
    return spans


def window_losses(
    model: PreTrainedModel,
    tokens: torch.Tensor,
    span: tuple[int, int, int],
    before: Sequence[int] = (),
) -> np.ndarray:
    """The losses in nats of a window's scored tokens, a float64 array.

    Args:
        model: a causal language model.
        tokens: the whole text's ids, int64 [tokens].
        span: a window from :func:`windows`.
        before: the ids before every window, such as BOS.

    Raises:
        NonFiniteError: a loss is not finite; the message names the window.
    """
    begin, end, first = span
    window = torch.cat([tokens.new_tensor(before), tokens[begin:end]])
    try:
        return position_losses(model, window, end - first)
    except NonFiniteError as error:
        raise NonFiniteError(f"in the window at tokens {begin} to {end}, {error}") from error


def aggregate(values: dict[str, dict], lengths: list[int]) -> list[dict]:
    """Perplexity at each length under both conventions, with bootstrap intervals over windows.

    Args:
        values: {"sum": its loss, "tokens": how many are scored} of each window, by
            "TITLE/LENGTH/BEGIN".
        lengths: window lengths in tokens.
    """
    rows = []
    for length in lengths:
        of_length = [value for key, value in values.items() if key.split("/")[-2] == str(length)]
        sums = np.array([value["sum"] for value in of_length])
        tokens = np.array([value["tokens"] for value in of_length])
        rows.append(
            {
                "length": length,
                "windows": len(of_length),
                "tokens": int(tokens.sum()),
                "token": _perplexity(sums, tokens),
                "window": _perplexity(sums / tokens, np.ones(len(of_length))),
            }
        )
    return rows


def _perplexity(sums: np.ndarray, counts: np.ndarray) -> dict:
    """exp(Σ sums / Σ counts) over windows [n], with its interval."""
    value = np.exp(sums.sum() / counts.sum())
    return resampled_interval(value, np.exp(resampled_ratio(sums, counts)), len(sums))
