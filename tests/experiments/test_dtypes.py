"""What models are evaluated in: on a CPU as ever, on a GPU what a base model or a checkpoint states."""

import json
import sys

import pytest
import torch

from experiments.kit import base_model, processes
from experiments.kit.base_model import BaseModel
from experiments.passkey import Passkey
from tests.models import byte_tokenizer, checkpoint, random_model

TRAINED = {"method": "yarn", "factor": 4.0, "options": {}, "seed": 3, "steps": 7, "length": 2048, "identity": "abc",
           "model": {"sha256": {"model.safetensors": "def"}}}  # fmt: skip


@pytest.fixture
def on_gpu(monkeypatch):
    """Only said: nothing here computes on it."""
    monkeypatch.setattr(base_model, "device", lambda: "cuda")
    monkeypatch.setattr(processes, "join", lambda: None)


@pytest.fixture(scope="module")
def stating(tmp_path_factory):
    """stating("float16") -> a checkpoint whose configuration states that."""
    folder = tmp_path_factory.mktemp("stating")
    for name in ("float32", "float16", "bfloat16"):
        random_model().to(getattr(torch, name)).save_pretrained(folder / name)
        byte_tokenizer().save_pretrained(folder / name)
    random_model().save_pretrained(folder / "none")
    config = json.loads((folder / "none" / "config.json").read_text())
    (folder / "none" / "config.json").write_text(json.dumps(config | {"dtype": None}))
    return folder


@pytest.fixture
def asked(monkeypatch):
    """asked("--model", "tiny", …) -> the dtype that an evaluation loads the model in."""

    def dtype(*line):
        monkeypatch.setattr(sys, "argv", ["passkey", *map(str, line)])
        return Passkey(Passkey.parse()).arguments.dtype

    return dtype


def test_on_a_cpu_it_is_float32_unless_another_is_asked_for(stating, asked):
    for line in (["--model", "tiny"], ["--model", stating / "float16"]):
        assert asked(*line) == "float32"
    assert asked("--model", "tiny", "--dtype", "bfloat16") == "bfloat16"


def test_on_a_gpu_a_base_model_says_so(on_gpu, monkeypatch, asked):
    monkeypatch.setattr(BaseModel, "check_access", lambda _: None)  # the weights are gated
    assert asked("--model", "llama2-7b") == asked("--model", "llama2-13b") == "bfloat16"
    assert asked("--model", "tiny") == "float32" and asked("--model", "smollm2") == "bfloat16"
    assert asked("--model", "llama2-7b", "--dtype", "float32") == "float32"


@pytest.mark.parametrize(
    ("stated", "expected"),
    [("float32", "float32"), ("float16", "float16"), ("bfloat16", "bfloat16"), ("none", "float32")],
)
def test_on_a_gpu_a_checkpoint_states_its_own(on_gpu, stating, asked, stated, expected):
    assert asked("--model", stating / stated) == BaseModel(str(stating / stated)).chosen_dtype(None) == expected


def test_on_a_gpu_a_fine_tune_is_evaluated_as_its_base_model_is(on_gpu, tmp_path, asked):
    for scale, expected in (("llama2-7b", "bfloat16"), ("tiny", "float32")):
        folder = checkpoint(tmp_path / scale)  # in float32
        (folder / "training.json").write_text(json.dumps(TRAINED | {"scale": scale}))
        assert asked("--model", folder) == expected
