"""CLEX in a model: exported, saved, restored, replaced and refused."""

import pytest
import torch
from transformers import AutoModelForCausalLM

from core import clex
from core.errors import InputError
from core.extend import export, extend
from core.huggingface import rotation
from core.huggingface.embedding import rope_geometry
from core.rope import RopeGeometry, scale
from tests.core.clex.made import SHORT, L, clex_model, full_logits, rotary, tokens
from tests.models import random_model


def test_an_export_loads_stock_and_is_restored(tmp_path):
    model = clex_model(factor=4)
    directory = export(model, tmp_path / "exported")
    stock = AutoModelForCausalLM.from_pretrained(directory).eval()
    assert not clex.is_installed(stock)
    assert stock.config.max_position_embeddings == 4 * L
    restored = clex.restore(AutoModelForCausalLM.from_pretrained(directory).eval(), directory)
    assert clex.is_installed(restored)
    assert clex.is_installed(model)
    for length in (10, 4 * L, 7 * L):
        ids = tokens(length)
        assert torch.equal(full_logits(restored, ids), full_logits(model, ids))
    with rotation.at_length(model, 4 * L):  # the fixed scale of the stock checkpoint
        assert torch.allclose(full_logits(stock, ids), full_logits(model, ids), atol=2e-3)
    short = tokens(10)
    assert not torch.allclose(full_logits(stock, short), full_logits(model, short), atol=0.1)


def test_saved_weights_are_equal_files_extend_a_fresh_model_and_say_their_scale(tmp_path):
    model = clex_model(factor=4)
    assert len({clex.save(model, tmp_path / str(i)).read_bytes() for i in range(8)}) == 1
    directory = tmp_path / "0"
    for weights in (directory / clex.FILE, directory):
        again = extend(random_model(**SHORT), "clex", 4, weights=weights)
        assert torch.equal(full_logits(again, tokens(50)), full_logits(model, tokens(50)))
    scaling = scale(rope_geometry(model), "clex", 3, weights=directory)
    assert scaling.inv_freq == pytest.approx(rotary(model).inv_freq(3).detach().numpy(), rel=1e-6)
    assert scaling.attention_factor == 1


def test_extending_a_clex_model_starts_again_from_pre_training(tmp_path):
    model = clex_model()
    ids = tokens(40)
    weights = clex.save(model, tmp_path)
    assert rope_geometry(model) == RopeGeometry(16, 10000.0, L)
    learned = "clex", {"weights": weights}
    for method, options in (("pi", {}), learned, learned):
        extend(model, method, 2, **options)
        fresh = extend(random_model(**SHORT), method, 2, **options)
        assert torch.equal(full_logits(model, ids), full_logits(fresh, ids))
        assert clex.is_installed(model) == (method == "clex")


def test_bad_weights_and_models_are_refused_and_leave_the_model_alone(tmp_path):
    model = random_model(**SHORT)
    before = full_logits(model, tokens(40))
    clex.save(clex_model(), tmp_path / "good")
    clex.save(clex_model(head_dim=32), tmp_path / "other")
    (tmp_path / "broken.safetensors").write_bytes(b"nothing of the kind")
    for factor, options, says in (
        (2, {}, "--method clex"),
        (2, {"weights": tmp_path / "absent"}, "no CLEX weights at .*absent"),
        (2, {"weights": tmp_path / "broken.safetensors"}, "does not hold CLEX weights"),
        (2, {"weights": tmp_path / "other"}, "trained for d = 32, .* this model has d = 16"),
        (17, {"weights": tmp_path / "good"}, "at most 16 here; 17"),
    ):
        with pytest.raises(InputError, match=says):
            extend(model, "clex", factor, **options)
    assert torch.equal(full_logits(model, tokens(40)), before)
    mixed = random_model("Gemma3TextConfig", layer_types=["sliding_attention", "full_attention"])
    for other in (random_model("CohereConfig"), mixed):
        with pytest.raises(InputError, match="no Llama-style rotary embedding"):
            clex.install(other, rope_geometry(other), 2)
