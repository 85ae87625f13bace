"""A learned embedding computes what a stock one does, to the bit; its gradients are those of finite differences."""

import json

import numpy as np
import pytest
import torch

from core import clex
from core.beyond.learned_factors import Factors, LearnedRotaryEmbedding, learning
from core.errors import InputError
from core.extend import extend
from core.geometry import RopeGeometry
from core.huggingface.embedding import rope_geometry, rotary_modules
from core.rope import BASELINE, ORIGINAL, scale
from tests.models import random_model

ARCHITECTURES = {
    "GPTNeoXConfig": {},  # rotates a part of each head
    "CohereConfig": {},  # interleaves the pairs
    "Gemma3TextConfig": {"layer_types": ["sliding_attention", "full_attention"]},
}


def tokens(length=200):
    return torch.randint(3, 300, (1, length), generator=torch.Generator().manual_seed(0))


def moved(geometry, size=0.5):
    """Factors that are no method's."""
    factors = Factors(geometry, scale(geometry, BASELINE, 2))
    with torch.no_grad():
        factors.moves += size * torch.randn(factors.moves.shape, generator=torch.Generator().manual_seed(1))
    return factors


def logits(model):
    return model(tokens(), use_cache=False).logits


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_learned_is_what_a_file_of_factors_computes(architecture, tmp_path):
    model = random_model(architecture, **ARCHITECTURES[architecture])
    factors = moved(rope_geometry(model))
    with learning(model, factors):
        learned = logits(model)
        learned.logsumexp(-1).mean().backward()
    assert (factors.moves.grad != 0).all()
    values, attention_factor = factors.values
    (file := tmp_path / "f.json").write_text(json.dumps({"factors": values, "attention_factor": attention_factor}))
    assert torch.equal(learned, logits(extend(model, "factors", 2, file=file)))
    # The values say all: a copy of float64 would be another number.
    assert [float(np.float32(value)) for value in values] == values


def test_gradients_are_those_of_finite_differences():
    model = random_model().double()
    factors = moved(rope_geometry(model))

    def loss():
        ids = tokens(60)
        return torch.nn.functional.cross_entropy(model(ids, use_cache=False).logits[0, :-1], ids[0, 1:])

    step, slopes = 1e-2, []
    with learning(model, factors):
        loss().backward()
        with torch.no_grad():
            for index in range(len(factors.moves)):
                ends = []
                for sign in (1, -1):
                    factors.moves[index] += sign * step
                    ends.append(loss().item())
                    factors.moves[index] -= sign * step
                slopes.append((ends[0] - ends[1]) / (2 * step))
    assert factors.moves.grad.tolist() == pytest.approx(slopes, rel=2e-2, abs=2e-4)


def test_a_move_turns_a_pair_by_a_radian_at_distance_l():
    geometry = RopeGeometry(8, 10000.0, 128)
    factors = Factors(geometry, scale(geometry, ORIGINAL, 2))
    before = factors.inv_freq.detach().double().numpy()
    with torch.no_grad():
        factors.moves += 0.01
    turns = (before - factors.inv_freq.detach().double().numpy()) * 128
    assert turns == pytest.approx(0.01 * np.minimum(1, 0.3 * 128 * geometry.inv_freq), rel=1e-2)


def test_afterwards_the_model_is_stock_and_frozen_and_one_without_such_an_embedding_is_refused(monkeypatch):
    geometry = RopeGeometry(16, 10000.0, 16)
    model = clex.install(random_model(max_position_embeddings=16), geometry, 2)
    with learning(model, moved(geometry)):
        assert not clex.is_installed(model) and rotary_modules(model)[0][0] is not model.model
    ((parent, _, rotary),) = rotary_modules(model)
    assert parent is model.model and not isinstance(rotary, LearnedRotaryEmbedding)
    assert not any(parameter.requires_grad for parameter in model.parameters())
    table = torch.randn(1, 3, 16)
    monkeypatch.setattr(type(rotary), "forward", lambda self, x, position_ids: (table, table))
    with (
        pytest.raises(InputError, match="does not compute from its inverse frequencies"),
        learning(model, moved(geometry)),
    ):
        pass
