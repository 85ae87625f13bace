"""The language-modelling loss without [length × vocabulary] logits in float32.

For a vocabulary of 32,000 and 16,384 tokens, logits and their gradient would take 4 GB. Here they
are computed a few tokens at a time: by Liger's kernel if it is installed and there is a GPU, and by
:func:`chunked_loss` otherwise.

No code of a model is replaced. :class:`HeadLoss` gives the output head (`lm_head`) a forward that
returns the loss instead of logits while labels are set. The head is still called as a module, so
DeepSpeed's ZeRO-3 gathers its weight, and data-parallel wrappers see an ordinary forward pass.
"""

from __future__ import annotations

import importlib.util
import os

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

IGNORED = -100
CHUNK_LOGITS = 2**25  # how many logits are held at a time: 128 MiB in float32


def chunked_loss(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, chunk: int
) -> Tensor:
    """What :func:`summed_loss` computes, `chunk` tokens at a time.

    The forward pass computes the gradients, too, so that no more than one chunk's logits are held
    and none is computed twice. The chunks' gradients of weight and bias are summed in float32.
    """
    if torch.is_grad_enabled():
        return _ChunkedLoss.apply(hidden, weight, bias, labels, chunk)
    parts = zip(hidden.split(chunk), labels.split(chunk), strict=True)
    return torch.stack(
        [_loss(_logits(part, weight, bias), targets) for part, targets in parts]
    ).sum()


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    logits = nn.functional.linear(hidden, weight, bias)
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _loss(logits: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, weight, bias, labels, chunk):
        exact = torch.promote_types(weight.dtype, torch.float32)
        losses = []
        of_hidden = torch.empty_like(hidden)
        of_weight = torch.zeros_like(weight, dtype=exact)
        of_bias = None if bias is None else torch.zeros_like(bias, dtype=exact)
        for part, targets, of_part in zip(
            hidden.split(chunk), labels.split(chunk), of_hidden.split(chunk), strict=True
        ):
            logits = _logits(part, weight, bias)
            losses.append(_loss(logits, targets))
            of_logits = logits.softmax(-1)
            counted = targets != IGNORED
            of_logits[counted, targets[counted]] -= 1
            of_logits *= counted[:, None]
            if of_bias is not None:
                of_bias += of_logits.sum(0)
            of_logits = of_logits.to(hidden.dtype)
            torch.mm(of_logits, weight, out=of_part)
            of_weight += of_logits.t() @ part
        gradients = (
            of_hidden,
            of_weight.to(weight.dtype),
            None if of_bias is None else of_bias.to(bias.dtype),
        )
        ctx.save_for_backward(*gradients)
        return torch.stack(losses).sum()

    @staticmethod
    def backward(ctx, gradient):
        scaled = (
            None if each is None else (each * gradient).to(each.dtype) for each in ctx.saved_tensors
        )
        return *scaled, None, None


def uses_liger(device: torch.device) -> bool:
    """Whether Liger's kernel computes the loss on this device: on a GPU, or where Triton's
    interpreter runs it."""
    runs = device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
    return runs and importlib.util.find_spec("liger_kernel") is not None


def summed_loss(hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
    """Cross entropy in nats summed over the tokens whose label is not :data:`IGNORED`.

    Args:
        hidden: [tokens, width], the output head's input.
        weight, bias: the output head's, [vocabulary, width] and [vocabulary] or None.
        labels: [tokens], the next token of each.
    """
    if uses_liger(hidden.device):
        from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy

        return liger_fused_linear_cross_entropy(
            hidden,
            weight,
            labels,
            bias=bias,
            ignore_index=IGNORED,
            reduction="sum",
            accum_dtype=torch.float32,
        )
    return chunked_loss(hidden, weight, bias, labels, max(1, CHUNK_LOGITS // len(weight)))


class HeadLoss:
    """Computes a causal language model's summed loss inside its own forward pass.

    Args:
        model: any model. If it rescales or caps its output head's logits (Gemma 2, Cohere,
            Granite), the loss is computed in the plain way, with all logits.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config.get_text_config(decoder=True)
        changed = [
            getattr(config, name, None)
            for name in ("final_logit_softcapping", "logit_scale", "logits_scaling")
        ]
        self._labels: Tensor | None = None
        self.fused = not any(changed)
        if self.fused:
            head = model.get_output_embeddings()
            self._head = head
            self._logits = head.forward
            head.forward = self._forward

    def kernel(self, device: torch.device) -> str:
        """What computes the loss on this device: "liger", "chunked", or "plain"."""
        return ("liger" if uses_liger(device) else "chunked") if self.fused else "plain"

    def __call__(self, model: nn.Module, inputs: dict, labels: Tensor) -> Tensor:
        """The loss summed over predicted tokens.

        Args:
            model: the model, in any wrapper that training uses.
            inputs: its other arguments, including `input_ids` [batch, length].
            labels: [batch, length], not shifted; :data:`IGNORED` where a token does not count.
        """
        following = nn.functional.pad(labels[:, 1:], (0, 1), value=IGNORED).flatten()
        self._labels = following if self.fused else None
        try:
            output = model(**inputs, use_cache=False).logits
        finally:
            self._labels = None
        if self.fused:
            return output
        logits = output.float().view(-1, output.shape[-1])
        return nn.functional.cross_entropy(logits, following, ignore_index=IGNORED, reduction="sum")

    def _forward(self, hidden: Tensor) -> Tensor:
        if self._labels is None:
            return self._logits(hidden)
        hidden = hidden.flatten(0, -2)
        weight = self._head.weight
        bias = self._head.bias
        kind = hidden.device.type
        if torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)
            hidden = hidden.to(dtype)
            weight = weight.to(dtype)
            bias = None if bias is None else bias.to(dtype)
        with torch.autocast(kind, enabled=False):
            return summed_loss(hidden, weight, bias, self._labels)
