"""The model before its first step: a small stock Llama whose first two layers are initialised as
induction heads.

Copying what followed an earlier occurrence of a token takes two heads in successive layers: one
tells each token what stands before it, and one searches for that token and copies its successor.
Neither helps without the other, so training stays on a plateau until both have formed by chance,
and longer with a larger vocabulary (Olsson et al., "In-context Learning and Induction Heads",
2022). On two CPU cores training would never leave it, so the model starts with both.

The first heads of layer 0 attend 1, 2, … tokens back. The heads of layer 1 look for a token whose
predecessor is the current token and copy it; they match by the slowest pairs of RoPE, which rotate
least with distance. All other outputs of layers start at zero, as is usual. Everything is trained.
The learning rate of the layers' matrices is low, so that training builds on these heads instead of
undoing them first.
"""

import copy
import math

import torch
from transformers import LlamaConfig, LlamaForCausalLM

_CONSTANT = 4  # hidden dimensions in which all embeddings start out equal
_SHARPNESS = 32.0  # of the initial attention: at least 87 % of it goes to the one token
_FASTEST = 12  # the fastest pairs, which tell neighbouring positions apart
_KNOWN = 3.0  # the weight of a token's predecessor, relative to its own embedding
# the score of the right predecessor; others have 0 with a standard deviation of a quarter of this
_FOUND = 20.0
_COPIED = 16.0  # the weight of the token that layer 1 copies, relative to the embedding
_REACH = 0.4  # of L: the distances that the heads of layer 1 divide among them at first


class Weighted(LlamaForCausalLM):
    """A Llama whose loss is a weighted sum over target tokens; it computes logits for those
    only."""

    def forward(
        self, input_ids: torch.Tensor, weights: torch.Tensor, position_ids: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """The loss in nats; all arguments are [rows, length], and a token of weight 0 is no
        target."""
        wanted = weights[:, 1:] > 0
        # Without a mask, transformers would take jumps in the positions for boundaries of packed
        # sequences.
        mask = torch.ones_like(input_ids)
        read = self.model(
            input_ids=input_ids, attention_mask=mask, position_ids=position_ids, use_cache=False
        )
        hidden = read.last_hidden_state[:, :-1][wanted]
        losses = torch.nn.functional.cross_entropy(
            self.lm_head(hidden), input_ids[:, 1:][wanted], reduction="none"
        )
        return {"loss": (losses * weights[:, 1:][wanted]).sum()}


def plain(model: Weighted) -> LlamaForCausalLM:
    """The stock model with the same weights."""
    config = copy.deepcopy(model.config)
    config.use_cache = True  # the Trainer turns it off
    stock = LlamaForCausalLM(config)
    stock.load_state_dict(model.state_dict())
    return stock


def build(config: LlamaConfig, looking_back: int, seed: int) -> Weighted:
    """A randomly initialised model in which `looking_back` heads of layer 0 attend 1, 2, … tokens
    back."""
    torch.manual_seed(seed)
    model = Weighted(config)
    d = config.head_dim
    width = config.hidden_size
    # The subspace that tells tokens apart, and for each head that looks back a subspace to write
    # the found token to.
    identity, *spaces = torch.linalg.qr(torch.randn(width, width)).Q.T.split(d)
    with torch.no_grad():
        model.model.embed_tokens.weight[:, :_CONSTANT] = config.initializer_range
        model.lm_head.weight.copy_(model.model.embed_tokens.weight)
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        for head in range(looking_back):
            _look_back(model, head, head + 1, identity, spaces[head])
        for head in range(config.num_attention_heads):
            _find_again(model, head, identity, spaces[0], looking_back)
    return model


def _look_back(
    model: LlamaForCausalLM, head: int, distance: int, identity: torch.Tensor, space: torch.Tensor
) -> None:
    """Let a head attend `distance` tokens back.

    All tokens share one key vector. Each query is that vector, rotated back by `distance`
    positions.
    """
    attention = model.model.layers[0].self_attn
    d = model.config.head_dim
    own = slice(head * d, (head + 1) * d)
    query, key = attention.q_proj.weight[own], attention.k_proj.weight[own]
    query.zero_()
    key.zero_()
    size = math.sqrt(_SHARPNESS) / _CONSTANT
    angle = distance * model.model.rotary_emb.inv_freq[:_FASTEST, None]
    key[:_FASTEST, :_CONSTANT] = size
    query[:_FASTEST, :_CONSTANT] = size * torch.cos(
        angle
    )  # transformers pairs dimension i with i + d/2
    query[d // 2 : d // 2 + _FASTEST, :_CONSTANT] = -size * torch.sin(angle)
    attention.v_proj.weight[own] = identity  # its input has a root mean square of 1
    attention.o_proj.weight[:, own] = _KNOWN * model.config.initializer_range * space.T


def _find_again(
    model: LlamaForCausalLM, head: int, identity: torch.Tensor, space: torch.Tensor, heads: int
) -> None:
    """Let a head of layer 1 find the tokens that followed the current one earlier, and copy them.

    The query is the token and the key is a token's predecessor; each head compares some dimensions
    of the subspace.
    """
    config = model.config
    attention = model.model.layers[1].self_attn
    d = config.head_dim
    own = slice(head * d, (head + 1) * d)
    pairs = d // config.num_attention_heads // 2
    dimensions = slice(2 * pairs * head, 2 * pairs * (head + 1))
    # Even the slowest pairs rotate with distance. So each head's queries are rotated back by the
    # middle of its share.
    distance = (head + 0.5) / config.num_attention_heads * _REACH * config.max_position_embeddings
    angle = -distance * model.model.rotary_emb.inv_freq[-pairs:, None]
    first, second = slice(d // 2 - pairs, d // 2), slice(d - pairs, d)
    # Root mean square of the layer's input relative to embeddings: the token itself, and what each
    # head wrote.
    norm = math.sqrt(1 + heads * _KNOWN**2 * d / config.hidden_size)
    match = 2 * pairs * _KNOWN / norm**2 / math.sqrt(d)
    size = math.sqrt(_FOUND / match)
    query, key = attention.q_proj.weight[own], attention.k_proj.weight[own]
    query.zero_()
    key.zero_()
    one, other = (size * half for half in identity[dimensions].split(pairs))
    query[first] = one * torch.cos(angle) - other * torch.sin(angle)
    query[second] = one * torch.sin(angle) + other * torch.cos(angle)
    key[first], key[second] = (size * half for half in space[dimensions].split(pairs))
    attention.v_proj.weight[own] = identity
    share = _COPIED * config.initializer_range * norm / config.num_attention_heads
    attention.o_proj.weight[:, own] = share * identity.T
