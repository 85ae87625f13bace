"""The committed base model: what its card and its scale say of it is so."""

import copy
import json

import pytest
import torch
from transformers import AutoTokenizer

from core import files
from core.embedding import config_geometry
from core.extend import extend
from eval import passkey
from eval.generation import Request, generate
from experiments import base_models
from experiments.kit import load_model
from experiments.kit.records import RESULTS, ROOT
from experiments.training.corpus import Corpus
from experiments.training.packing import pack

DIRECTORY = ROOT / "models" / "tiny"


@pytest.fixture(scope="module")
def tiny():
    return load_model.load("tiny")


def test_the_scale_states_its_geometry():
    assert config_geometry(load_model.check_config("tiny")) == base_models.get("tiny").geometry


def test_it_is_small_and_in_bfloat16(tiny):
    assert tiny.model.num_parameters() <= 12e6
    file = DIRECTORY / "model.safetensors"
    assert file.stat().st_size <= 24e6
    assert json.loads((DIRECTORY / "config.json").read_text())["dtype"] == "bfloat16"
    assert files.sha256(file) in (DIRECTORY / "README.md").read_text()


def test_its_tokenizer_loses_nothing_and_splits_numbers_into_digits():
    tokenizer = AutoTokenizer.from_pretrained(DIRECTORY)
    text = "Zażółć 😀 gęślą\tjaźń — 3,141 592\r\n\x00 “quoted”  two  spaces"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    digits = [tokenizer.decode([token]) for token in tokenizer("x 9876543 y").input_ids]
    assert [piece for piece in digits if piece.strip().isdigit()] == list("9876543")


def test_it_finds_passkeys(tiny):
    made = [passkey.sample(tiny.tokenizer, 400, depth / 3, seed) for depth in range(4) for seed in range(100, 105)]
    requests = [
        Request(sample.key, tuple(tiny.tokenizer(sample.prompt).input_ids), passkey.MAX_NEW_TOKENS) for sample in made
    ]
    predictions = {key: tiny.tokenizer.decode(tokens) for key, tokens in generate(tiny.model, requests)}
    right = sum(passkey.score(predictions[sample.key], sample.answer) for sample in made)
    assert right >= 8  # a guess is right once in 90,000


def test_a_recorded_fine_tune_began_as_a_float32_pass_over_the_same_books_does(tiny, tmp_path):
    """Also on processors that have bfloat16, in which the first loss differs by 5e-5 or so."""
    run = json.loads((RESULTS / "tiny" / "finetune" / "dprope_n-hat=20_s=2_seed=0.json").read_text())
    data = pack(Corpus(run["data"]), tiny.tokenizer, run["length"], run["batch"], run["steps"], run["seed"], tmp_path)
    assert data.facts["sha256"] == run["data_sha256"]
    model = extend(copy.deepcopy(tiny.model), run["method"], run["factor"], **run["options"])
    with torch.inference_mode():
        first = [data[i]["input_ids"][None] for i in range(run["batch"])]
        losses = [model(tokens, labels=tokens).loss.item() for tokens in first]
    assert sum(losses) / len(losses) == pytest.approx(run["losses"][0], rel=2e-6)
