"""Attention by offset against a plain loop, and heads that were built to look back under interpolation."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaConfig

from core.extend import extend
from eval.previous_token import BLOCK, Head, attention_by_offset, find
from experiments.lab.pretraining import network
from tests.models import byte_tokenizer, checkpoint, random_model

TOKENS = torch.randint(3, 259, (3 * BLOCK + 5,), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def looking_back():
    """A model whose first three heads were given to look 1, 2 and 3 tokens back."""
    sizes = {"vocab_size": 300, "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2}
    config = LlamaConfig(**sizes, intermediate_size=256, max_position_embeddings=512)
    return network.plain(network.build(config, 3, seed=0)).eval()


def test_attention_by_offset_is_what_a_plain_loop_finds():
    model = random_model(attn_implementation="eager")
    found = attention_by_offset(model, TOKENS, reach=5)
    with torch.inference_mode():
        layers = model(TOKENS[None], output_attentions=True).attentions
    assert found.shape == (2, 4, 6, 2)
    for layer, head, k, block in [(0, 0, 0, 0), (1, 3, 5, 1), (1, 2, 1, 0)]:
        queries = range((block + 1) * BLOCK, (block + 2) * BLOCK)
        mean = np.mean([layers[layer][0, head, query, query - k].item() for query in queries])
        assert found[layer, head, k, block] == pytest.approx(mean, rel=1e-5)


def test_the_attention_that_the_model_had_is_left_in_place():
    model = random_model(attn_implementation="sdpa")
    attention_by_offset(model, TOKENS[:256])
    assert model.config._attn_implementation == "sdpa"


def test_heads_that_were_built_to_look_back_are_found(looking_back):
    assert {Head(0, k - 1, k) for k in (1, 2, 3)} <= set(find(attention_by_offset(looking_back, TOKENS)))


@pytest.mark.parametrize("factor", [2, 4])
def test_interpolation_moves_them_s_times_as_far(looking_back, factor):
    extend(looking_back, "pi", factor)
    shares = attention_by_offset(looking_back, TOKENS, reach=16).mean(axis=3)
    for k in (1, 2, 3):
        assert shares[0, k - 1].argmax() == factor * k


def test_a_record_says_where_they_look(looking_back, tmp_path, call):
    model, text = tmp_path / "toy", tmp_path / "book.txt"
    extend(looking_back, "pi", 2)  # saved as plain RoPE below
    stock = network.plain(looking_back)
    stock.config.rope_parameters = {"rope_type": "default", "rope_theta": 10000.0}
    stock.config.max_position_embeddings = 512
    stock.save_pretrained(model)
    byte_tokenizer().save_pretrained(model)
    text.write_text("A word, and another; " * 40)
    options = ["--model", model, "--text", text, "--tokens", 512, "--results", tmp_path / "results"]
    status, out, err = call("previous_token", *options, "--method", "original", "pi", "dprope", "--n-hat", "0")
    assert status == 0, err
    found = {}
    for line in out.split():
        record = json.loads(Path(line).read_text())
        found[record["method"]] = {row["offset"]: row for row in record["scores"]["heads"] if row["layer"] == 0}
        for name in ("own", "scaled"):
            rows = record["scores"]["heads"]
            assert record["scores"][name]["mean"] == pytest.approx(np.mean([row[name] for row in rows]), abs=1e-3)
    for k in (1, 2, 3):
        assert found["original"][k]["own"] > 50 and found["original"][k]["scaled"] < 20
        assert found["pi"][k]["scaled"] > found["pi"][k]["own"]
        assert found["dprope"][k] == found["original"][k]


def test_bad_input_is_one_sentence(tmp_path, call):
    for options, says in (
        (["--scale", "tiny", "--tokens", "2000"], "L = 1024"),
        (["--scale", "tiny", "--factor", "32"], "give at most 16"),
    ):
        status, _, err = call("previous_token", *options, "--results", tmp_path / "results")
        assert status == 2 and says in err and err.count("\n") == 1


def test_a_model_without_such_heads_has_nothing_to_compare(tmp_path, call):
    (tmp_path / "book.txt").write_text("A word, and another; " * 40)
    model = checkpoint(tmp_path / "toy", max_position_embeddings=512)
    options = ["--model", model, "--text", tmp_path / "book.txt", "--tokens", 512, "--results", tmp_path / "results"]
    status, _, err = call("previous_token", *options)
    assert status == 2 and "no head" in err and not list(tmp_path.rglob("*.jsonl"))
