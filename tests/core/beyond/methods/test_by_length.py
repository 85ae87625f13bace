"""A prompt's scale is that of its length: against models that were extended by that scale."""

import math

import pytest
import torch

from core.errors import InputError
from core.extend import check_extension, export, extend, extend_checkpoint
from core.huggingface import rotation
from core.rope import BASELINE, PROPOSED, scale
from tests.core.geometries import LLAMA2
from tests.models import random_model

L = 32
SHORT = {"max_position_embeddings": L}
MIXED = {
    **SHORT,
    "head_dim": 16,
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": 16,
}
TOKENS = torch.arange(4 * L)[None].remainder(293) + 3


def logits(model, length):
    with torch.no_grad(), rotation.at_length(model, length):
        return model(TOKENS[:, :length]).logits


@pytest.mark.parametrize(
    "architecture, sizes, of",
    [("LlamaConfig", SHORT, PROPOSED), ("Gemma3TextConfig", MIXED, BASELINE)],
)
def test_each_length_has_its_own_scale(architecture, sizes, of):
    factor = 2.5
    model = extend(random_model(architecture, **sizes), "by-length", factor, of=of)
    for length in (L, L + 1, 4 * L):
        by = min(max(math.ceil(length / L), 1), factor)
        alone = random_model(architecture, **sizes)
        if by > 1:
            extend(alone, of, by)
        assert torch.equal(logits(model, length), logits(alone, length)), length
    with torch.no_grad():
        assert torch.equal(model(TOKENS).logits, alone(TOKENS).logits)  # where no length is set
    scales = {rotation.scale_for(model, length) for length in (5, L, 2 * L, 2 * L + 1, 4 * L)}
    assert len(scales) == 3
    assert check_extension(model)["options"] == {"of": of}
    extend(model, of, factor)
    assert rotation.scale_for(model, 5) == rotation.scale_for(model, 4 * L) == b""


def test_its_frequencies_are_those_of_the_longest_prompt_and_no_file_states_it(tmp_path):
    by_length = scale(LLAMA2, "by-length", 4, of=BASELINE)
    assert (by_length.inv_freq == scale(LLAMA2, BASELINE, 4).inv_freq).all()
    for wrong in ({}, {"of": "clex"}, {"of": "by-length"}, {"of": "nothing"}):
        with pytest.raises(InputError):
            scale(LLAMA2, "by-length", 4, **wrong)
    with pytest.raises(InputError, match="by its length"):
        extend_checkpoint(tmp_path, tmp_path / "target", "by-length", 2, of=BASELINE)
    with pytest.raises(InputError, match="by its length"):
        export(extend(random_model(), "by-length", 2, of=BASELINE), tmp_path / "target")
    assert not (tmp_path / "target").exists()
