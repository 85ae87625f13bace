"""The model before its first step: a small stock Llama whose first layer already looks back.

Copying what followed an earlier occurrence takes two heads in a row: one that lets each token know what stands
before it, and one that searches for it. Neither is of use without the other, so that training sits on a plateau until
both have formed by chance; models that are given the first one leave it at once (Olsson et al., "In-context Learning
and Induction Heads", 2022, on smeared keys). Here the first heads of layer 0 start as such: head h attends h + 1
tokens back. Everything else is random, and everything is trained.
"""

from __future__ import annotations

import copy
import math

import torch
from transformers import LlamaConfig, LlamaForCausalLM

_CONSTANT = 4  # hidden dimensions in which every token's embedding starts out the same
_SHARPNESS = 32.0  # of the initial attention; 87 % or more of it falls on the one token
_FASTEST = 12  # pairs that tell neighbouring positions apart


class Weighted(LlamaForCausalLM):
    """A Llama whose loss is the weighted sum over targets; logits exist for those alone."""

    def forward(
        self, input_ids: torch.Tensor, weights: torch.Tensor, position_ids: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """The loss in nats; everything is [rows, length], a weight of 0 is no target."""
        wanted = weights[:, 1:] > 0
        # Without a mask, transformers would take positions that jump for the seams of packed sequences.
        mask = torch.ones_like(input_ids)
        read = self.model(input_ids=input_ids, attention_mask=mask, position_ids=position_ids, use_cache=False)
        hidden = read.last_hidden_state[:, :-1][wanted]
        losses = torch.nn.functional.cross_entropy(self.lm_head(hidden), input_ids[:, 1:][wanted], reduction="none")
        return {"loss": (losses * weights[:, 1:][wanted]).sum()}


def plain(model: Weighted) -> LlamaForCausalLM:
    """The stock model with the same weights."""
    config = copy.deepcopy(model.config)
    config.use_cache = True  # the Trainer turns it off
    stock = LlamaForCausalLM(config)
    stock.load_state_dict(model.state_dict())
    return stock


def build(config: LlamaConfig, looking_back: int, seed: int) -> Weighted:
    """A randomly initialised model, `looking_back` of whose heads in layer 0 attend 1, 2, … tokens back."""
    torch.manual_seed(seed)
    model = Weighted(config)
    with torch.no_grad():
        embedding = model.model.embed_tokens.weight
        embedding[:, :_CONSTANT] = config.initializer_range
        for head in range(looking_back):
            _look_back(model, head, distance=head + 1)
    return model


def _look_back(model: LlamaForCausalLM, head: int, distance: int) -> None:
    """Queries are what keys will be after `distance` more rotations, of a vector that all tokens share."""
    attention, d = model.model.layers[0].self_attn, model.config.head_dim
    own = slice(head * d, (head + 1) * d)
    query, key = attention.q_proj.weight[own], attention.k_proj.weight[own]
    query.zero_()
    key.zero_()
    size = math.sqrt(_SHARPNESS) / _CONSTANT
    angle = distance * model.model.rotary_emb.inv_freq[:_FASTEST, None]
    key[:_FASTEST, :_CONSTANT] = size
    query[:_FASTEST, :_CONSTANT] = size * torch.cos(angle)  # transformers pairs dimension i with i + d/2
    query[d // 2 : d // 2 + _FASTEST, :_CONSTANT] = -size * torch.sin(angle)
    spread = 1 / math.sqrt(model.config.hidden_size)
    attention.v_proj.weight[own].normal_(0, spread)
    attention.o_proj.weight[:, own].normal_(0, spread)
