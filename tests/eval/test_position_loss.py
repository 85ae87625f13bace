"""The chunked loss; tests/core/huggingface/test_families.py compares it with one pass over the whole text."""

import pytest
import torch

from core.errors import NonFiniteError
from eval import position_loss
from eval.position_loss import position_losses
from tests.models import random_model


def test_a_non_finite_loss_names_its_position(monkeypatch):
    monkeypatch.setattr(position_loss, "CHUNK", 16)
    model = random_model()
    with torch.no_grad():
        model.get_input_embeddings().weight[7] = float("nan")
    tokens = torch.full((60,), 5)
    tokens[32] = 7
    with pytest.raises(NonFiniteError, match="position 32 "):
        position_losses(model, tokens)
