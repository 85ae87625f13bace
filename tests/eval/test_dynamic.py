"""Where stock RoPE follows the input's length, a score is that of the input alone, whatever was read before."""

import copy

import pytest
import torch

from eval import generation, position_loss
from eval.generation import Request, generate
from eval.perplexity import window_losses
from eval.position_loss import position_losses
from tests.models import random_model

L = 32
LONG = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [1.0 + i for i in range(8)]}
KINDS = {
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "longrope": LONG | {"factor": 4.0, "original_max_position_embeddings": L},
}
PAIRS = pytest.mark.parametrize("kind", KINDS)


def model_of(kind):
    longest = L if kind == "dynamic" else 4 * L  # what `dynamic` counts from
    return random_model(max_position_embeddings=longest, rope_parameters=KINDS[kind] | {"rope_theta": 1e4})


def logits(model, tokens, length):
    """Of a model that has read nothing yet; what follows the tokens only makes the input so long."""
    filled = torch.nn.functional.pad(tokens, (0, length - len(tokens)), value=5)
    with torch.inference_mode():
        return copy.deepcopy(model)(filled[None], use_cache=False).logits[0, : len(tokens)]


def tokens(count):
    return torch.randint(3, 300, (count,), generator=torch.Generator().manual_seed(1))


@PAIRS
def test_generation(monkeypatch, kind):
    monkeypatch.setattr(generation, "PREFILL_CHUNK", 8)
    model, text, new = model_of(kind), tokens(3 * L).tolist(), 6
    requests = [Request(str(count), tuple(text[:count]), new) for count in (90, 20, 70, 28, 40, 10)]
    found = dict(generate(model, requests))
    for request in requests:
        made = list(request.prompt)
        for _ in range(new):
            token = int(logits(model, torch.tensor(made), len(request.prompt) + new)[-1].argmax())
            if token == 2:
                break
            made.append(token)
        assert found[request.key] == made[len(request.prompt) :]


@PAIRS
def test_losses(monkeypatch, kind):
    monkeypatch.setattr(position_loss, "CHUNK", 8)
    model, text = model_of(kind), tokens(3 * L)
    spans = [(0, 90, 1), (0, 50, 1), (4, 25, 5), (0, 60, 40)]
    found = [*window_losses(model, text, spans), position_losses(model, text[:61])]
    for losses, (begin, end, first) in zip(found, [*spans, (0, 61, 1)]):
        read = text[begin:end]
        expected = torch.nn.functional.cross_entropy(
            logits(model, read[:-1], len(read) - 1), read[1:], reduction="none"
        )
        assert losses == pytest.approx(expected[first - begin - 1 :].numpy(), abs=1e-4)
    assert model.model.rotary_emb.rope_type == kind  # nothing stays behind
