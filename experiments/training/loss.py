"""The language-modelling loss without [length × vocabulary] logits in float32.

For a vocabulary of 32,000 and 16,384 tokens, logits and their gradient would take 4 GB. Here they
are computed a few tokens at a time: by Liger's kernel if it is installed and there is a GPU, and by
:class:`ChunkedLoss` otherwise.

No code of a model is replaced. :class:`HeadLoss` gives the output head (`lm_head`) a forward that
returns the loss instead of logits while labels are set. The head is still called as a module, so
DeepSpeed's ZeRO-3 gathers its weight, and data-parallel wrappers see an ordinary forward pass.
"""

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import is_liger_kernel_available

from core.errors import InputError

IGNORED = -100
CHUNK_LOGITS = 2**25  # how many logits are held at a time: 128 MiB in float32


class ChunkedLoss(torch.autograd.Function):
    """What :func:`summed_loss` computes, `chunk` tokens at a time.

    The forward pass computes the gradients, too, so that no more than one chunk's logits are held
    and none is computed twice. The chunks' gradients of the weight are summed in float32.
    """

    @staticmethod
    def forward(ctx, hidden, weight, labels, chunk):
        exact = torch.promote_types(weight.dtype, torch.float32)
        losses = []
        of_hidden = torch.empty_like(hidden)
        of_weight = torch.zeros_like(weight, dtype=exact)
        for part, targets, of_part in zip(
            hidden.split(chunk), labels.split(chunk), of_hidden.split(chunk), strict=True
        ):
            logits = nn.functional.linear(part, weight).to(exact)
            losses.append(_cross_entropy(logits, targets))
            of_logits = logits.softmax(-1)
            counted = targets != IGNORED
            of_logits[counted, targets[counted]] -= 1
            of_logits *= counted[:, None]
            of_logits = of_logits.to(hidden.dtype)
            torch.mm(of_logits, weight, out=of_part)
            of_weight += of_logits.t() @ part
        ctx.save_for_backward(of_hidden, of_weight.to(weight.dtype))
        return torch.stack(losses).sum()

    @staticmethod
    def backward(ctx, gradient):
        scaled = [(each * gradient).to(each.dtype) for each in ctx.saved_tensors]
        return *scaled, None, None


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")


def uses_liger(device: torch.device) -> bool:
    """Whether Liger's kernel computes the loss on this device."""
    return device.type == "cuda" and is_liger_kernel_available()


def summed_loss(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy in nats summed over the tokens whose label is not :data:`IGNORED`.

    Args:
        hidden: [tokens, width], the output head's input.
        weight: the output head's, [vocabulary, width].
        labels: [tokens], the next token of each.
    """
    if not uses_liger(hidden.device):
        return ChunkedLoss.apply(hidden, weight, labels, max(1, CHUNK_LOGITS // len(weight)))
    from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy

    return liger_fused_linear_cross_entropy(
        hidden,
        weight,
        labels,
        ignore_index=IGNORED,
        reduction="sum",
        accum_dtype=torch.float32,
    )


class HeadLoss:
    """Computes a causal language model's summed loss inside its own forward pass.

    Args:
        model: any model. If it rescales or caps its output head's logits (Gemma 2, Cohere,
            Granite, Falcon-H1) or adds a bias to them, the loss is computed in the plain way, with
            all logits.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config.get_text_config(decoder=True)
        changes = "final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier"
        changed = any(getattr(config, name, None) for name in changes)
        self._labels: Tensor | None = None
        self._head = model.get_output_embeddings()
        self.fused = not changed and self._head.bias is None
        if self.fused:
            self._logits = self._head.forward
            self._head.forward = self._forward

    def kernel(self, device: torch.device) -> str:
        """What computes the loss on this device: "liger", "chunked", or "plain"."""
        if not self.fused:
            return "plain"
        return "liger" if uses_liger(device) else "chunked"

    def __call__(self, model: nn.Module, inputs: dict, labels: Tensor) -> Tensor:
        """The loss summed over predicted tokens.

        Args:
            model: the model, in any wrapper that training uses.
            inputs: its other arguments, including `input_ids` [batch, length].
            labels: [batch, length], not shifted; :data:`IGNORED` where a token does not count.

        Raises:
            InputError: the model's class changed the loss, which it takes for logits.
        """
        following = nn.functional.pad(labels[:, 1:], (0, 1), value=IGNORED).flatten()
        self._labels = following
        try:
            output = model(**inputs, use_cache=False).logits
        finally:
            self._labels = None
        if not self.fused:
            return _cross_entropy(output.float().flatten(0, 1), following)
        if not torch.allclose(output.float(), self._summed, rtol=0, atol=0, equal_nan=True):
            raise InputError(
                f"{type(model).__name__} changes the logits of its output head by a setting that "
                f"{__file__} does not know; name it there."
            )
        return output

    def _forward(self, hidden: Tensor) -> Tensor:
        if self._labels is None:
            return self._logits(hidden)
        hidden = hidden.flatten(0, -2)
        weight = self._head.weight
        kind = hidden.device.type
        if torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)
            hidden = hidden.to(dtype)
            weight = weight.to(dtype)
        with torch.autocast(kind, enabled=False):
            self._summed = summed_loss(hidden, weight, self._labels)
        return self._summed
