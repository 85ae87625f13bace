"""Attention by distance against plain loops over what transformers returns, for several architectures."""

import numpy as np
import pytest
import torch
from core.relative import bin_edges

from core.errors import InputError
from eval.attention_distance import attention_by_distance
from tests.models import random_model

LENGTH = 96
TOKENS = torch.randint(3, 259, (LENGTH,), generator=torch.Generator().manual_seed(0))
EDGES = bin_edges(LENGTH)
QUERIES = np.array([8, 9, 23, 24, 47, 48, 60, 95])


def by_loop(model, sinks):
    """[layers, quarters, bins], and the share of the first keys."""
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        layers = model(TOKENS[None], output_attentions=True).attentions
    found, first = np.zeros((len(layers), 4, len(EDGES) - 1)), np.zeros(8)
    for layer, (attention,) in enumerate(layers):
        for query in QUERIES:
            for head in attention.double().numpy():
                rest = head[query, sinks : query + 1].sum()
                for key in range(sinks, query + 1):
                    bin_of = np.flatnonzero(query - key >= EDGES)[-1]
                    found[layer, 4 * query // LENGTH, bin_of] += head[query, key] / rest / len(attention)
                first += head[query, :8] / len(attention) / len(QUERIES) / len(layers)
    return found, first


@pytest.mark.parametrize("sinks", [0, 1, 4])
@pytest.mark.parametrize("architecture", ["LlamaConfig", "GPTNeoXConfig", "Qwen2Config"])
def test_it_is_what_a_plain_loop_finds(architecture, sinks):
    model = random_model(architecture, attn_implementation="sdpa")
    found = attention_by_distance(model, TOKENS, EDGES, QUERIES, sinks)
    mass, first = by_loop(model, sinks)
    np.testing.assert_allclose(found.mass, mass, atol=1e-6)
    np.testing.assert_allclose(found.first_keys, first, atol=1e-6)
    assert found.queries.tolist() == [3, 2, 2, 1]
    np.testing.assert_allclose(found.mass.sum(axis=2), np.tile(found.queries, (2, 1)), rtol=1e-6)


def test_a_window_of_attention_is_kept():
    model = random_model("MistralConfig", sliding_window=16, attn_implementation="sdpa")
    found = attention_by_distance(model, TOKENS, EDGES, QUERIES, sinks=0).mass.sum(axis=(0, 1))
    assert found[EDGES[:-1] >= 16].sum() == 0 and found[EDGES[:-1] < 16].min() > 0


def test_many_queries_are_read_in_parts():
    model = random_model(attn_implementation="sdpa")
    every = np.arange(8, LENGTH)
    together = attention_by_distance(model, TOKENS, EDGES, every).mass
    alone = sum(attention_by_distance(model, TOKENS, EDGES, every[i::3]).mass for i in range(3))
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_the_model_computes_and_stays_as_it_was(implementation):
    model = random_model(attn_implementation=implementation)
    with torch.inference_mode():
        before = model(TOKENS[None]).logits
        attention_by_distance(model, TOKENS, EDGES, QUERIES)
        assert torch.equal(model(TOKENS[None]).logits, before)
    assert model.config._attn_implementation == implementation


def test_layers_are_told_as_they_are_read():
    told = []
    attention_by_distance(random_model(), TOKENS, EDGES, QUERIES, progress=told.append)
    assert told == [1, 1]


@pytest.mark.parametrize("queries", [[], [3], [LENGTH]])
def test_queries_outside_are_refused(queries):
    with pytest.raises(InputError, match="within the text"):
        attention_by_distance(random_model(), TOKENS, EDGES, np.array(queries, dtype=int))


def test_another_kind_of_attention_is_refused():
    model = random_model("BloomConfig", hidden_size=64, n_head=4, n_layer=2)
    with pytest.raises(InputError):
        attention_by_distance(model, TOKENS, EDGES, QUERIES)
