"""A model by its name: which it is, in what it is computed, and the real weights and books that
packages carry."""

import hashlib
import json

import safetensors.torch
import torch

from core import files
from experiments.kit import base_model, texts
from experiments.kit.base_model import BaseModel
from tests.models import checkpoint, fine_tuned


def test_a_base_models_name_wins_over_a_folder_of_that_name(tmp_path, monkeypatch):
    checkpoint(tmp_path / "tiny", max_position_embeddings=77)
    monkeypatch.chdir(tmp_path)
    assert BaseModel("tiny").model and BaseModel("tiny").geometry.context_length == 1024
    assert not BaseModel("./tiny").model and BaseModel("./tiny").geometry.context_length == 77


def test_the_weights_of_a_folder_are_those_that_are_loaded_wherever_they_lie(tmp_path):
    """And of tensors, whatever file holds them."""
    (tmp_path / "parts").mkdir()
    for name in ("pytorch_model.bin", "training_args.bin", "other.safetensors", "clex.safetensors"):
        (tmp_path / name).write_text(name)

    index = tmp_path / "model.safetensors.index.json"

    def hashes(*shards, **tensors):
        where = dict(zip(tensors, shards))
        files.write_json(index, {"weight_map": where})
        for shard in shards:
            held = {name: tensor for name, tensor in tensors.items() if where[name] == shard}
            safetensors.torch.save_file(held, tmp_path / shard)
        return base_model.weight_hashes(tmp_path)

    a = torch.arange(4.0)
    b = torch.ones(2, 3, dtype=torch.bfloat16)
    first = hashes("parts/1.safetensors", "2.safetensors", a=a, b=b)
    assert (
        first["clex.safetensors"] == hashlib.sha256(b"clex.safetensors").hexdigest()
        and len(first) == 2
    )
    assert hashes("3.safetensors", "3.safetensors", a=a, b=b) == first
    assert hashes("3.safetensors", "3.safetensors", a=a, b=2 * b) != first
    assert hashes("3.safetensors", "3.safetensors", a=a, b=b.view(3, 2)) != first
    assert hashes("1.safetensors", "1.safetensors", a=a, b=b) == first
    for name, wins in (("0.safetensors", False), ("2.safetensors", True)):
        safetensors.torch.save_file({"a": a, "b": 2 * b}, tmp_path / name)
        files.write_json(index, {"weight_map": {"a": "1.safetensors", "b": name}})
        assert (base_model.weight_hashes(tmp_path) != first) == wins  # a loader takes the last
    safetensors.torch.save_file({"a": a, "b": 2 * b}, tmp_path / "model.safetensors")
    assert base_model.weight_hashes(tmp_path) != first  # that file is preferred to an index
    files.write_json(tmp_path / "config.json", {"transformers_weights": "1.safetensors"})
    assert base_model.weight_hashes(tmp_path) == first  # and the file that is named to all


def test_the_dtype_is_that_of_the_option_or_on_a_gpu_of_the_model(monkeypatch, tmp_path):
    folder = checkpoint(tmp_path / "model")
    assert BaseModel("llama2-7b").chosen_dtype(None) == "float32"  # on a CPU
    monkeypatch.setattr(base_model, "device", lambda: "cuda")
    for name, expected in {
        "llama2-13b": "bfloat16",
        "smollm2": "bfloat16",
        "tiny": "float32",
    }.items():
        assert BaseModel(name).chosen_dtype(None) == expected
        assert BaseModel(name).chosen_dtype("float16") == "float16"
    config = json.loads((folder / "config.json").read_text())
    for dtype in ("float32", "float16", "bfloat16", None):
        (folder / "config.json").write_text(json.dumps(config | {"dtype": dtype}))
        assert BaseModel(str(folder)).chosen_dtype(None) == (dtype or "float32")
    fine_tuned(folder, scale="llama2-7b")  # a fine-tune is evaluated as its base model is
    assert BaseModel(str(folder), as_it_is=True).chosen_dtype(None) == "bfloat16"


def test_books_are_whole_and_free_of_the_licence_text():
    library = texts.books(texts.AVAILABLE)
    assert [len(book.text) // 100_000 for book in library] == [32, 5, 12, 12]
    for book in library:
        assert "PROJECT GUTENBERG" not in book.text.upper().replace("PROJECT GUTENBERG EBOOK", "")
        assert book.text[0] not in " \n"
    plays = {play.title: play.text for play in texts.plays(texts.PLAYS)}
    assert len(plays) == texts.PLAYS and min(map(len, plays.values())) > 80_000
    assert "To be, or not to be" in plays["Hamlet"] and not any(
        "GUTENBERG" in text.upper() for text in plays.values()
    )
