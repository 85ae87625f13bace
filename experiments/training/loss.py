"""The language-modelling loss without [length × vocabulary] logits in float32.

For a vocabulary of 32,000 and 16,384 tokens, logits and their gradient would take 4 GB. Here the loss and both
gradients are computed together, a few tokens at a time: by Liger's kernel if it is installed and there is a GPU, and by
:class:`ChunkedLoss` otherwise.

No code of a model is replaced. :class:`HeadLoss` gives the output head (`lm_head`) a forward that returns the loss
instead of logits while labels are set. The head is still called as a module, so DeepSpeed's ZeRO-3 gathers its weight,
and data-parallel wrappers see an ordinary forward pass.
"""

from __future__ import annotations

import importlib.util
import os

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

IGNORED = -100
CHUNK_LOGITS = 2**23  # how many logits are held at a time: 32 MiB in float32


class ChunkedLoss(torch.autograd.Function):
    """Summed cross entropy of `hidden @ weight.T + bias`, with its gradients, in chunks of tokens.

    Gradients are computed in the forward pass, so that each chunk's logits are computed once and then overwritten by
    their own gradient. This takes as many multiplications as plain cross entropy, without its memory.
    """

    @staticmethod
    def forward(ctx, hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, chunk: int, train: bool):
        """hidden [tokens, width], weight [vocabulary, width], bias [vocabulary], labels [tokens] -> scalar."""
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        wants = [train and wanted for wanted in ctx.needs_input_grad[:3]]
        d_hidden = torch.zeros_like(hidden) if wants[0] else None
        d_weight = torch.zeros_like(weight, dtype=torch.float32) if wants[1] else None
        d_bias = torch.zeros_like(bias, dtype=torch.float32) if wants[2] else None
        for begin in range(0, len(labels), chunk):
            part = slice(begin, begin + chunk)
            counted = labels[part] != IGNORED
            target = labels[part].where(counted, 0)[:, None]
            logits = nn.functional.linear(hidden[part], weight, bias).float()
            normalizer = logits.logsumexp(-1, keepdim=True)
            total += (normalizer - logits.gather(-1, target))[counted].sum()
            if not any(wants):
                continue
            # d loss / d logits = softmax − one-hot, written over the logits; zero for ignored tokens.
            gradient = logits.sub_(normalizer).exp_()
            gradient.scatter_add_(-1, target, torch.full_like(normalizer, -1.0)).mul_(counted[:, None])
            narrow = gradient.to(hidden.dtype)
            if wants[0]:
                torch.mm(narrow, weight, out=d_hidden[part])
            if wants[1] and weight.dtype == torch.float32:
                d_weight.addmm_(narrow.T, hidden[part])
            elif wants[1]:
                d_weight += narrow.T @ hidden[part]
            if wants[2]:
                d_bias += gradient.sum(0)
        ctx.gradients = d_hidden, d_weight, d_bias
        ctx.dtypes = hidden.dtype, weight.dtype, None if bias is None else bias.dtype
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, scale: Tensor):
        gradients, ctx.gradients = ctx.gradients, None
        scaled = [None if g is None else g.mul_(scale).to(dtype) for g, dtype in zip(gradients, ctx.dtypes)]
        return (*scaled, None, None, None)


def uses_liger(device: torch.device) -> bool:
    """Whether Liger's kernel computes the loss on this device: on a GPU, or where Triton's interpreter runs it."""
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
            hidden, weight, labels, bias=bias, ignore_index=IGNORED, reduction="sum", accum_dtype=torch.float32
        )
    chunk = max(1, CHUNK_LOGITS // len(weight))
    return ChunkedLoss.apply(hidden, weight, bias, labels, chunk, torch.is_grad_enabled())


class HeadLoss:
    """Computes a causal language model's summed loss inside its own forward pass.

    Args:
        model: any model. If it rescales or caps its output head's logits (Gemma 2, Cohere, Granite), the loss is
            computed in the plain way, with all logits.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config.get_text_config(decoder=True)
        changed = [getattr(config, name, None) for name in ("final_logit_softcapping", "logit_scale", "logits_scaling")]
        self._labels: Tensor | None = None
        self._vocabulary = config.vocab_size
        self.fused = not any(changed)
        if self.fused:
            head = model.get_output_embeddings()
            self._head, self._logits = head, head.forward
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
        hidden, weight, bias = hidden.flatten(0, -2), self._head.weight, self._head.bias
        kind = hidden.device.type
        if torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)
            hidden, weight, bias = hidden.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
        with torch.autocast(kind, enabled=False):
            return summed_loss(hidden, weight, bias, self._labels)
