"""A model by its name: which it is, and in what it is computed."""

import hashlib

import pytest
import safetensors.torch
import torch

from core import files
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments import base_models
from experiments.base_models.model import BaseModel
from experiments.kit.loading import weights_hashes
from experiments.kit.model import resolve
from tests.files import edit
from tests.models import checkpoint, fine_tuned


def test_a_base_models_name_wins_over_a_folder_of_that_name(tmp_path, monkeypatch):
    checkpoint(tmp_path / "tiny", max_position_embeddings=77)
    monkeypatch.chdir(tmp_path)
    assert resolve("tiny").base and resolve("tiny").geometry.context_length == 1024
    assert not resolve("./tiny").base and resolve("./tiny").geometry.context_length == 77


def test_a_base_model_that_is_stated_otherwise_than_its_checkpoint_is_refused(
    tmp_path, monkeypatch
):
    path = checkpoint(tmp_path / "model", max_position_embeddings=512)
    for geometry, says in (
        (RopeGeometry(16, 1e4, 512), None),
        (RopeGeometry(16, 1e4, 256), "512"),
        (RopeGeometry(16, 5e5, 512), "500000"),
    ):
        monkeypatch.setitem(base_models.MODELS, "toy", BaseModel("Toy", str(path), geometry))
        if says is None:
            assert resolve("toy").load()
        else:
            with pytest.raises(InputError, match=says):
                resolve("toy").load()


def test_figures_know_the_papers_n_hat_of_a_model_of_ones_own(tmp_path):
    facts = resolve(str(checkpoint(tmp_path / "model"))).facts(2)
    assert facts["n_hat"] == {"2": 10, "4": 8}  # 5/8 and 1/2 of 16


A = torch.arange(4.0)
B = torch.ones(2, 3, dtype=torch.bfloat16)


@pytest.fixture
def hashes(tmp_path):
    """hashes({tensor: …}, {tensor: file}) -> those of a folder whose index says so."""

    def of(tensors, where):
        files.write_json(tmp_path / "model.safetensors.index.json", {"weight_map": where})
        for file in {*where.values()}:
            held = {name: tensors[name] for name in where if where[name] == file}
            safetensors.torch.save_file(held, tmp_path / file)
        return weights_hashes(tmp_path)

    return of


def test_the_weights_of_a_folder_are_its_tensors_whatever_file_holds_them(hashes, tmp_path):
    for name in ("pytorch_model.bin", "training_args.bin", "other.safetensors", "clex.safetensors"):
        (tmp_path / name).write_text(name)
    (tmp_path / "parts").mkdir()
    first = hashes({"a": A, "b": B}, {"a": "parts/1.safetensors", "b": "2.safetensors"})
    clex = hashlib.sha256(b"clex.safetensors").hexdigest()
    assert first == {"tensors": first["tensors"], "clex.safetensors": clex}
    one = dict.fromkeys("ab", "3.safetensors")
    assert hashes({"a": A, "b": B}, one) == first
    assert hashes({"a": A, "b": 2 * B}, one) != first
    assert hashes({"a": A, "b": B.view(3, 2)}, one) != first


def test_the_weights_of_a_folder_are_those_that_are_loaded(hashes, tmp_path):
    """A loader takes the last file of an index, and a file that has the usual name rather than an
    index."""
    first = hashes({"a": A, "b": B}, dict.fromkeys("ab", "1.safetensors"))
    other = {"a": A, "b": 2 * B}
    for name, wins in (("0.safetensors", False), ("2.safetensors", True)):
        safetensors.torch.save_file(other, tmp_path / name)
        index = {"weight_map": {"a": "1.safetensors", "b": name}}
        files.write_json(tmp_path / "model.safetensors.index.json", index)
        assert (weights_hashes(tmp_path) != first) == wins
    safetensors.torch.save_file(other, tmp_path / "model.safetensors")
    assert weights_hashes(tmp_path) != first


def test_the_dtype_is_that_of_the_option_or_on_a_gpu_of_the_model(monkeypatch, tmp_path):
    folder = checkpoint(tmp_path / "model")
    assert resolve("llama2-7b").chosen_dtype(None) == "float32"  # on a CPU
    monkeypatch.setattr("experiments.kit.model.device", lambda: "cuda")
    of_models = {"llama2-13b": "bfloat16", "smollm2": "bfloat16", "tiny": "float32"}
    for name, expected in of_models.items():
        assert resolve(name).chosen_dtype(None) == expected
    for dtype in ("float32", "float16", "bfloat16", None):
        edit(folder / "config.json", dtype=dtype)
        assert resolve(str(folder)).chosen_dtype(None) == (dtype or "float32")
    # a fine-tune is evaluated as its base model is, and not as one of whose name its folder was
    for source, expected in (("meta-llama/Llama-2-7b-hf", "bfloat16"), ("llama2-7b", "float32")):
        fine_tuned(folder, scale="llama2-7b", model={"source": source, "sha256": {"a": "b"}})
        assert resolve(str(folder), as_it_is=True).chosen_dtype(None) == expected
