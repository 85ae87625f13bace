"""A model that no method can extend is evaluated as it is, and its records can be shown."""

import json

import pytest
import torch
import transformers

from eval import passkey
from experiments.kit.base_model import BaseModel
from tests.models import byte_tokenizer, random_model

L = 768
SIZES = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 300, "n_positions": L, "eos_token_id": 2}
SCALED = {
    "llama3": {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 192},
    "dynamic": {"factor": 4.0},
}
GLOBAL = {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}
LAYERS = {
    "layer_types": ["sliding_attention", "full_attention"],
    "rope_parameters": {"full_attention": GLOBAL, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}},
}
WITHOUT = ("gpt2", "gptj")


def model_of(kind):
    if kind == "gpt2":
        torch.manual_seed(0)
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**SIZES)).eval()
    if kind == "gptj":  # its rotary embedding is a table of as many positions
        torch.manual_seed(0)
        return transformers.GPTJForCausalLM(transformers.GPTJConfig(**SIZES, rotary_dim=8)).eval()
    if kind == "by layer type":
        return random_model("Gemma3TextConfig", max_position_embeddings=L, head_dim=16, sliding_window=64, **LAYERS)
    parameters = {"rope_type": kind, "rope_theta": 1e4, **SCALED[kind]}
    return random_model(max_position_embeddings=L, rope_parameters=parameters)


@pytest.fixture(params=[*SCALED, "by layer type", *WITHOUT])
def model(request, tmp_path):
    model_of(request.param).save_pretrained(tmp_path / "toy")
    byte_tokenizer().save_pretrained(tmp_path / "toy")
    (tmp_path / "book.txt").write_text("All happy families are alike. " * 40)
    return tmp_path / "toy"


def test_it_is_measured_within_its_length_and_shown(model, call, tmp_path):
    results, reference = tmp_path / "results", BaseModel(str(model)).load()
    lines = (["passkey", "--depths", "1", "--keys", "1"],
             ["perplexity", "--texts", tmp_path / "book.txt", "--tokens", "900", "--stride", "700"])  # fmt: skip
    for line in lines:
        status, _, err = call(*line, "--model", model, "--results", results)
        assert status == 0, err
    records = {name: json.loads((results / "toy" / name / "as-it-is.json").read_text()) for name, *_ in lines}
    facts = json.loads((results / "toy" / "model.json").read_text())
    assert facts["geometry"] == {"context_length": L}
    assert all((record["method"], record["factor"]) == (None, 1.0) for record in records.values())
    assert records["passkey"]["lengths"] == [384, L] and records["perplexity"]["lengths"] == [L]

    (journal,) = (tmp_path / "runs" / "toy" / "passkey").glob("*.jsonl")
    for key, entry in map(json.loads, journal.read_text().splitlines()):
        asked = byte_tokenizer()(passkey.sample(byte_tokenizer().encode, int(key.split("/")[0]), 0.0, 0).prompt)
        prompt = torch.tensor([asked.input_ids])
        how = {"attention_mask": torch.ones_like(prompt), "pad_token_id": 0, "do_sample": False}
        made = reference.generate(prompt, max_new_tokens=passkey.MAX_NEW_TOKENS, **how)[0, prompt.shape[1] :]
        assert entry["value"]["prediction"] == byte_tokenizer().decode(made, skip_special_tokens=True)
    ids = torch.tensor(byte_tokenizer()((tmp_path / "book.txt").read_text()).input_ids[:900])
    losses = [torch.nn.functional.cross_entropy(BaseModel(str(model)).load()(part[None, :-1]).logits[0], part[1:],
                                                reduction="none")[skipped:]
              for part, skipped in ((ids[:L], 0), (ids[700:], L - 701))]  # fmt: skip
    expected = float(torch.cat(losses).mean().exp())
    assert records["perplexity"]["scores"][0]["token"]["mean"] == pytest.approx(expected, rel=1e-4)

    status, _, err = call("tables.__main__", "--results", results)
    assert status == 0, err


def test_extending_it_is_refused_with_the_reason(model, call, tmp_path):
    reason = "no RoPE parameters" if "GPT" in (model / "config.json").read_text() else "is scaled already"
    places = ["--results", tmp_path / "results"]
    own = ["--output", tmp_path / "out"]
    for line in (["passkey", "--method", "pi", *places], ["disturbance"], ["extend"],
                 ["finetune", "--steps", "1", *places], ["rerun", *own]):  # fmt: skip
        status, _, err = call(*line, "--model", model)
        assert status == 2 and reason in err and err.count("\n") == 1, (line, err)
    assert not (tmp_path / "results").exists() and not (tmp_path / "out").exists()


@pytest.mark.parametrize("model", WITHOUT, indirect=True)
def test_positions_that_it_has_not_are_refused_before_it_is_loaded(model, call, tmp_path, monkeypatch):
    monkeypatch.setattr(BaseModel, "load", lambda *_: pytest.fail("weights were loaded"))
    status, _, err = call("passkey", "--lengths", "800", "--model", model, "--results", tmp_path / "results")
    assert status == 2 and "has no RoPE" in err and err.count("\n") == 1
