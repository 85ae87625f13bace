"""The committed base model: what its card and its scale say of it is so."""

from transformers import AutoTokenizer

from core.huggingface.embedding import config_geometry
from experiments import base_models
from experiments.kit.model import resolve
from records import ROOT

DIRECTORY = ROOT / "models" / "tiny"


def test_the_scale_states_its_geometry():
    assert config_geometry(resolve("tiny").config) == base_models.MODELS["tiny"].geometry


def test_its_tokenizer_loses_nothing_and_splits_numbers_into_digits():
    tokenizer = AutoTokenizer.from_pretrained(DIRECTORY)
    text = "Zażółć 😀 gęślą\tjaźń — 3,141 592\r\n\x00 “quoted”  two  spaces"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    digits = [tokenizer.decode([token]) for token in tokenizer("x 9876543 y").input_ids]
    assert [piece for piece in digits if piece.strip().isdigit()] == list("9876543")
