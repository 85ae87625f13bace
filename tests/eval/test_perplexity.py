"""Sliding windows against one pass over each, and hand-worked averages."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.errors import NonFiniteError
from core.extend import extend
from eval import perplexity
from tests.core.huggingface.test_families import HYBRIDS
from tests.models import random_model, token_losses, tokens

(TOKENS,) = tokens(230, seed=1)


@given(st.integers(2, 400), st.integers(2, 100), st.integers(1, 100), st.integers(0, 2))
def test_every_token_that_something_predicts_is_scored_once(count, length, stride, before):
    length = max(length, stride + max(before, 1))
    spans = perplexity.windows(count, length, stride, before)
    scored = [position for _, end, first in spans for position in range(first, end)]
    assert scored == list(range(0 if before else 1, count))
    for number, (begin, end, first) in enumerate(spans):
        assert begin == number * stride
        assert before + end - begin <= length
        assert before + first > begin
        if number:
            assert before + first - begin >= length - stride


# one that changes its logits
MODELS = {"Gemma2Config": {"head_dim": 16}, **HYBRIDS}


@pytest.mark.parametrize("architecture", MODELS)
def test_chunks_agree_with_a_pass_over_each_window(monkeypatch, architecture):
    monkeypatch.setattr(perplexity, "CHUNK", 16)
    model = extend(random_model(architecture, **MODELS[architecture]), "yarn", 2)
    spans = perplexity.windows(len(TOKENS), 150, 32)
    for begin, end, first in spans:
        losses = perplexity.window_losses(model, TOKENS, (begin, end, first))
        expected = token_losses(model, TOKENS[begin:end])[first - end :]
        assert losses == pytest.approx(expected, abs=2e-4)


def test_the_two_conventions_by_hand():
    losses = {"A/4/0": [1.0, 3.0, 2.0, 2.0], "A/4/4": [5.0], "A/8/0": [1.0]}
    sums = {key: {"sum": sum(each), "tokens": len(each)} for key, each in losses.items()}
    four, eight = perplexity.aggregate(sums, [4, 8])
    assert (four["length"], four["windows"], four["tokens"]) == (4, 2, 5)
    assert four["token"]["mean"] == pytest.approx(np.exp(13 / 5))
    assert four["window"]["mean"] == pytest.approx(np.exp((2 + 5) / 2))
    # Resampled, a convention's mean is that of one of the windows or of both.
    assert four["token"]["low"] == pytest.approx(np.exp(2))
    assert four["token"]["high"] == pytest.approx(np.exp(5))
    assert (eight["length"], eight["windows"], eight["tokens"]) == (8, 1, 1)


def test_a_non_finite_loss_names_its_window(monkeypatch):
    monkeypatch.setattr(perplexity, "CHUNK", 16)
    model = random_model()
    of_text = torch.full((100,), 5)
    with torch.no_grad():
        model.get_input_embeddings().weight[7] = float("nan")
    of_text[72] = 7
    perplexity.window_losses(model, of_text, (0, 60, 1))
    with pytest.raises(NonFiniteError, match="tokens 40 to 100, the loss at position"):
        perplexity.window_losses(model, of_text, (40, 100, 60))
