"""The committed base model: what its card and its scale say of it is so."""

import json

from transformers import AutoTokenizer

from core import files
from core.huggingface.embedding import config_geometry
from experiments import base_models
from experiments.kit.checkpoint import Checkpoint
from experiments.kit.records import ROOT

DIRECTORY = ROOT / "models" / "tiny"


def test_the_scale_states_its_geometry():
    assert config_geometry(Checkpoint("tiny").config) == base_models.MODELS["tiny"].geometry


def test_it_is_small_and_in_bfloat16():
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
