"""The chunked loss against one plain forward pass over the whole text."""

import pytest
import torch

from core.errors import NonFiniteError
from core.extend import extend
from eval import position_loss
from eval.position_loss import position_losses
from tests.models import random_model


@pytest.mark.parametrize(
    ("architecture", "length"),
    [("LlamaConfig", 1), ("LlamaConfig", 65), ("MistralConfig", 200)],
)
def test_chunks_do_not_change_the_loss(monkeypatch, architecture, length):
    monkeypatch.setattr(position_loss, "CHUNK", 64)
    model = extend(random_model(architecture), "dprope", 2)
    tokens = torch.randint(3, 300, (length + 1,), generator=torch.Generator().manual_seed(0))
    losses = position_losses(model, tokens)
    with torch.inference_mode():
        log_probabilities = model(tokens[None, :-1]).logits[0].log_softmax(-1)
    expected = -log_probabilities[torch.arange(length), tokens[1:]]
    assert losses == pytest.approx(expected.numpy(), abs=1e-4)


def test_a_non_finite_loss_names_its_position(monkeypatch):
    monkeypatch.setattr(position_loss, "CHUNK", 16)
    model = random_model()
    with torch.no_grad():
        model.get_input_embeddings().weight[7] = float("nan")
    tokens = torch.full((60,), 5)
    tokens[32] = 7
    with pytest.raises(NonFiniteError, match="position 32 "):
        position_losses(model, tokens)
