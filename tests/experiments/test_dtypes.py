"""What models are evaluated in: on a CPU as ever, on a GPU what a scale or a checkpoint states."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from experiments import base_models
from experiments.kit import experiment, load_model, processes
from tests.models import byte_tokenizer, checkpoint, random_model

TRAINED = {"method": "yarn", "factor": 4.0, "options": {}, "seed": 3, "steps": 7, "length": 2048, "identity": "abc",
           "model": {"sha256": {"model.safetensors": "def"}}}  # fmt: skip


@pytest.fixture
def on_gpu(monkeypatch):
    """Only said: nothing here computes on it."""
    monkeypatch.setattr(load_model, "device", lambda: "cuda")
    monkeypatch.setattr(processes, "place", lambda: None)


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


def asked(*line):
    return experiment.Evaluation(
        experiment.parser("", "passkey").parse_args([*map(str, line)]), "passkey"
    ).arguments.dtype


def test_on_a_cpu_it_is_float32_unless_another_is_asked_for(stating):
    for line in (["--model", "tiny"], ["--model", "llama2-7b"], ["--model", stating / "float16"]):
        assert asked(*line) == "float32"
    assert asked("--model", "tiny", "--dtype", "bfloat16") == "bfloat16"


def test_on_a_gpu_a_scale_says_so(on_gpu):
    assert asked("--model", "llama2-7b") == asked("--model", "llama2-13b") == "bfloat16"
    assert asked("--model", "tiny") == asked("--model", "smollm2") == "float32"
    assert asked("--model", "llama2-7b", "--dtype", "float32") == "float32"


@pytest.mark.parametrize(
    ("stated", "expected"),
    [("float32", "float32"), ("float16", "float16"), ("bfloat16", "bfloat16"), ("none", "float32")],
)
def test_on_a_gpu_a_checkpoint_states_its_own(on_gpu, stating, stated, expected):
    assert asked("--model", stating / stated) == load_model.chosen_dtype(None, str(stating / stated)) == expected


def test_on_a_gpu_a_fine_tune_is_evaluated_as_its_scale_is(on_gpu, tmp_path):
    for scale, expected in (("llama2-7b", "bfloat16"), ("tiny", "float32")):
        folder = checkpoint(tmp_path / scale)  # in float32
        (folder / "training.json").write_text(json.dumps(TRAINED | {"scale": scale}))
        assert asked("--model", folder) == expected


def test_a_sweep_states_another_dtype_and_only_that(tmp_path, call, monkeypatch):
    """Records in float32 are named as they were before there was a choice."""
    monkeypatch.setattr("experiments.beyond.selections.RESAMPLES", 20)
    model = checkpoint(tmp_path / "toy", max_position_embeddings=32)
    (tmp_path / "book.txt").write_text("".join(np.random.default_rng(0).choice(list("abcdefgh "), 200)))
    command = ["selections", "--model", model, "--text", tmp_path / "book.txt", "--every", "8"]
    found = {}
    for name, more in (("usual", []), ("stated", ["--dtype", "float32"]), ("half", ["--dtype", "bfloat16"])):
        status, _, err = call(*command, "--results", tmp_path / name / "results", *more)
        assert status == 0, err
        (file,) = (tmp_path / name / "results" / "toy" / "selections").glob("*.json")
        found[name] = json.loads(file.read_text())
    assert found["usual"]["identity"] == found["stated"]["identity"] != found["half"]["identity"]
    assert "dtype" not in found["usual"] and found["half"]["dtype"] == "bfloat16"
    assert found["half"]["blocks"] != found["usual"]["blocks"]


def test_generate_takes_a_dtype(stating, call, monkeypatch):
    loaded, load = [], AutoModelForCausalLM.from_pretrained
    monkeypatch.setattr(
        AutoModelForCausalLM, "from_pretrained", lambda *a, **named: loaded.append(named["dtype"]) or load(*a, **named)
    )
    command = ["generate", "--model", stating / "bfloat16", "--prompt", "a", "--tokens", "1"]
    assert call(*command)[0] == call(*command, "--dtype", "float16")[0] == 0
    assert loaded == [torch.float32, torch.float16]


def test_each_scale_names_a_dtype_that_a_model_can_have():
    assert {preset.gpu_dtype for preset in base_models.MODELS.values()} <= {None, *load_model.HALF}
