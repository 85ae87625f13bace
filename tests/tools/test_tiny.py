"""The committed base model: what its card and its scale say of it is so."""

import json

import pytest
from transformers import AutoTokenizer

from core import files
from core.huggingface.embedding import config_geometry
from eval import passkey
from eval.generation import Request, generate
from experiments import base_models
from experiments.kit.base_model import BaseModel
from experiments.kit.records import ROOT

DIRECTORY = ROOT / "models" / "tiny"


@pytest.fixture(scope="module")
def tiny():
    return BaseModel("tiny").load()


def test_the_scale_states_its_geometry():
    assert config_geometry(BaseModel("tiny").config) == base_models.MODELS["tiny"].geometry


def test_it_is_small_and_in_bfloat16(tiny):
    assert tiny.num_parameters() <= 12e6
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
    tokenizer = BaseModel("tiny").tokenizer
    encode = tokenizer.encode
    samples = {str(number): passkey.sample(encode, 400, number / 7, 100 + number) for number in range(8)}
    requests = [Request(key, tuple(encode(each.prompt)), passkey.MAX_NEW_TOKENS) for key, each in samples.items()]
    predictions = {key: tokenizer.decode(tokens) for key, tokens in generate(tiny, requests)}
    right = sum(passkey.score(predictions[key], sample.answer) for key, sample in samples.items())
    assert right >= 3  # a guess is right once in 90,000
