"""A learned embedding computes what a stock one does, to the bit; its gradients are those of finite
differences."""

import numpy as np
import pytest
import torch

from core.beyond.learned_factors import Factors, learning
from core.extend import extend
from core.huggingface.embedding import rope_geometry
from core.rope import BASELINE, scale
from tests.files import write
from tests.models import random_model, tokens

ARCHITECTURES = {
    "GPTNeoXConfig": {},  # rotates a part of each head
    "CohereConfig": {},  # interleaves the pairs
    "Gemma3TextConfig": {"layer_types": ["sliding_attention", "full_attention"]},
    # scaled before
    "Qwen2Config": {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}},
}


def moved(geometry):
    """Factors that are no method's."""
    factors = Factors(geometry, scale(geometry, BASELINE, 2))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        factors.moves += 0.5 * torch.randn(factors.moves.shape, generator=generator)
    return factors


def logits(model):
    return model(tokens(200), use_cache=False).logits


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_learned_is_what_a_file_of_factors_computes(architecture, tmp_path):
    model = random_model(architecture, **ARCHITECTURES[architecture])
    factors = moved(rope_geometry(model))
    with learning(model, factors):
        learned = logits(model)
        learned.logsumexp(-1).mean().backward()
    assert (factors.moves.grad != 0).all()
    assert not any(each.requires_grad for each in model.parameters())
    values, attention_factor = factors.values
    file = tmp_path / "f.json"
    write(file, {"factors": values, "attention_factor": attention_factor})
    assert torch.equal(learned, logits(extend(model, "factors", 2, file=file)))
    # The values say all: a copy of float64 would be another number.
    assert [float(np.float32(value)) for value in values] == values


def test_gradients_are_those_of_finite_differences():
    model = random_model().double()
    factors = moved(rope_geometry(model))

    def loss():
        return model(tokens(60), labels=tokens(60), use_cache=False).loss

    def at(index, step):
        with torch.no_grad():
            factors.moves[index] += step
            value = loss().item()
            factors.moves[index] -= step
        return value

    with learning(model, factors):
        loss().backward()
        for index, gradient in enumerate(factors.moves.grad.tolist()):
            slope = (at(index, 0.01) - at(index, -0.01)) / 0.02
            assert gradient == pytest.approx(slope, rel=2e-2, abs=2e-4)
