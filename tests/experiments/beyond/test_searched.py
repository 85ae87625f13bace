"""Factors searched end to end on a small random model, killed and resumed for real."""

import json
import random

import numpy as np
import pytest
import torch

from core.extend import extend
from experiments.beyond import searched
from experiments.kit.base_model import BaseModel
from tests.models import byte_tokenizer, checkpoint

L = 160  # 2L bytes, and not 1.2 L, have room for a passkey and its question
QUICK = ("--samples", "2", "--population", "16", "--generations", "1")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    root = tmp_path_factory.mktemp("inputs")
    (root / "data").mkdir()
    (root / "data" / "one.txt").write_text(" ".join(random.Random(0).choices(("all", "happy", "families"), k=800)))
    checkpoint(root / "model", max_position_embeddings=L)
    return root


def line(inputs, out, *more):
    return "searched", "--model", inputs / "model", "--corpus", inputs / "data", *QUICK, "--results", out / "r", *more


def record(out):
    (file,) = (out / "r" / "model" / "beyond" / "searched").iterdir()
    return json.loads(file.read_text()), file


def test_a_needle_is_a_text_with_a_key_that_its_end_repeats():
    text = torch.arange(1000) % 90 + 5
    for depth in (0.0, 0.5, 1.0):
        ids, answer = searched.needle(byte_tokenizer(), text, depth, "0 1", [1])
        assert len(ids) == len(text) and ids[0] == 1
        words = byte_tokenizer().decode(ids.tolist())
        key = byte_tokenizer().decode(ids[-answer:].tolist()).strip()
        assert len(key) == 5 and key.isdigit() and words.count(key) == 3
        assert words.endswith(f"The pass key is {key}")


def test_the_record_holds_the_factors_of_least_loss_of_the_needles(inputs, tmp_path, call):
    assert call(*line(inputs, tmp_path))[0] == 0
    found, file = record(tmp_path)
    assert len(found["losses"]) == 16 + 4 and found["generations_least"][-1] == min(found["losses"])
    model = BaseModel(str(inputs / "model")).load()
    extend(model, "factors", 2, file=file)
    (sequences,) = (tmp_path / "runs" / "data").glob("*/tokens.bin")
    rows = np.memmap(sequences, dtype=found["data_facts"]["dtype"]).reshape(-1, 2 * L)
    order = searched.pack(searched.Corpus(str(inputs / "data")), byte_tokenizer(), 2 * L, 2, 1, 0, sequences.parents[1])
    losses = []
    for i in range(2):
        row = order[i]["input_ids"]
        assert (rows == row.numpy()).all(axis=1).any()
        ids, answer = searched.needle(byte_tokenizer(), row, i / 2, f"0 {i}", [])
        with torch.inference_mode():
            rates = model(ids[None]).logits[0].log_softmax(-1)
        losses.append(-rates[-answer - 1 : -1].gather(1, ids[-answer:, None]).mean().item())
    assert np.mean(losses) == pytest.approx(min(found["losses"]), rel=1e-5)
    assert "done already" in call(*line(inputs, tmp_path))[1]


def test_killed_and_given_again_it_ends_the_same(inputs, tmp_path, call, monkeypatch):
    assert call(*line(inputs, tmp_path / "whole"))[0] == 0
    calls, make = [], searched.needle_loss

    def killed(*given):
        calls.append(given)
        if len(calls) == 15:
            raise KeyboardInterrupt
        return make(*given)

    monkeypatch.setattr(searched, "needle_loss", killed)
    assert call(*line(inputs, tmp_path / "cut"))[0] == 130
    calls.clear()
    monkeypatch.setattr(searched, "needle_loss", lambda *given: calls.append(given) or make(*given))
    assert call(*line(inputs, tmp_path / "cut"))[0] == 0
    assert len(calls) == 2 * 20 - 14  # what was whole is not measured again
    same = ("factors", "losses", "generations_least", "attention_factor", "identity")
    whole, cut = (record(tmp_path / name)[0] for name in ("whole", "cut"))
    assert {key: whole[key] for key in same} == {key: cut[key] for key in same}


@pytest.mark.parametrize(
    "more, named",
    [
        (("--population", 15), "15"),
        (("--critical-pair", 8), "8"),
        (("--factor", 1.2), "passkey"),
        (("--corpus", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_a_line(more, named, inputs, tmp_path, call):
    status, _, error = call(*line(inputs, tmp_path, *more))
    assert status == 2 and named in error.strip().splitlines()[-1] and "Traceback" not in error
    assert not list(tmp_path.rglob("searched/*.json"))
