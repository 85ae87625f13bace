"""The model before its first step: a small stock Llama that can already look back and find a token again.

Copying what followed an earlier occurrence takes two heads in a row: one that lets each token know what stands
before it, and one that searches for it and copies. Neither is of use without the other, so that training sits on a
plateau until both have formed by chance, and the more tokens there are to tell apart the longer (Olsson et al.,
"In-context Learning and Induction Heads", 2022). On two CPU cores nothing else would be learnt, so the model is given
both: the first heads of layer 0 attend 1, 2, … tokens back, and the heads of layer 1 look for a token whose
predecessor is the one at hand, by the slowest pairs of RoPE, which distance turns least, and copy it. All other
outputs of layers start at zero, as is usual, and everything is trained. The learning rate of the
layers' matrices is low, so that training goes on from there and does not undo it first.
"""

from __future__ import annotations

import copy
import math

import torch
from transformers import LlamaConfig, LlamaForCausalLM

_CONSTANT = 4  # hidden dimensions in which every token's embedding starts out the same
_SHARPNESS = 32.0  # of the initial attention; 87 % or more of it falls on the one token
_FASTEST = 12  # pairs that tell neighbouring positions apart
_KNOWN = 3.0  # what a token knows of its predecessor, against its own embedding
_FOUND = 20.0  # score of a predecessor that is found again; others have 0 with a standard deviation of a quarter of it
_COPIED = 16.0  # what the heads of layer 1 add of the token they found, against the embedding
_REACH = 0.4  # of L, that these heads share as distances to look over at first


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
    d, width = config.head_dim, config.hidden_size
    # What tokens are known by, and for each head that looks back a place of its own to write it.
    known, *places = torch.linalg.qr(torch.randn(width, width)).Q.T.split(d)
    with torch.no_grad():
        model.model.embed_tokens.weight[:, :_CONSTANT] = config.initializer_range
        model.lm_head.weight.copy_(model.model.embed_tokens.weight)
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        for head in range(looking_back):
            _look_back(model, head, head + 1, known, places[head])
        for head in range(config.num_attention_heads):
            _find_again(model, head, known, places[0], looking_back)
    return model


def _look_back(model: LlamaForCausalLM, head: int, distance: int, known: torch.Tensor, place: torch.Tensor) -> None:
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
    attention.v_proj.weight[own] = known  # its input has a root mean square of 1
    attention.o_proj.weight[:, own] = _KNOWN * model.config.initializer_range * place.T


def _find_again(model: LlamaForCausalLM, head: int, known: torch.Tensor, place: torch.Tensor, heads: int) -> None:
    """The query is a token, the key its predecessor, each head's by a part of what it is known by."""
    config, attention = model.config, model.model.layers[1].self_attn
    d = config.head_dim
    own, pairs = slice(head * d, (head + 1) * d), d // config.num_attention_heads // 2
    part = slice(2 * pairs * head, 2 * pairs * (head + 1))
    # Distance turns the slowest pairs too: each head's queries are turned back by what lies in the middle of its share.
    distance = (head + 0.5) / config.num_attention_heads * _REACH * config.max_position_embeddings
    angle = -distance * model.model.rotary_emb.inv_freq[-pairs:, None]
    first, second = slice(d // 2 - pairs, d // 2), slice(d - pairs, d)
    # Root mean square of the layer's input, in embeddings: the token itself, and what each head knows of another.
    norm = math.sqrt(1 + heads * _KNOWN**2 * d / config.hidden_size)
    match = 2 * pairs * _KNOWN / norm**2 / math.sqrt(d)
    size = math.sqrt(_FOUND / match)
    query, key = attention.q_proj.weight[own], attention.k_proj.weight[own]
    query.zero_()
    key.zero_()
    one, other = (size * half for half in known[part].split(pairs))
    query[first] = one * torch.cos(angle) - other * torch.sin(angle)
    query[second] = one * torch.sin(angle) + other * torch.cos(angle)
    key[first], key[second] = (size * half for half in place[part].split(pairs))
    attention.v_proj.weight[own] = known
    share = _COPIED * config.initializer_range * norm / config.num_attention_heads
    attention.o_proj.weight[:, own] = share * known.T
