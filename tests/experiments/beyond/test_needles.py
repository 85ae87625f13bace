"""Keys in books end to end on a small random model."""

import json

import numpy as np
import pytest

from core.extend import extend
from core.rope import RopeGeometry
from eval.beyond import needles
from experiments import base_models
from experiments.base_models.model import BaseModel
from tests.models import byte_tokenizer, checkpoint, random_model, token_losses

GEOMETRY = RopeGeometry(16, 10000.0, 512)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A base model, random, with L = 512, and the command that reads two books."""
    path = checkpoint(tmp_path / "model", max_position_embeddings=512)
    monkeypatch.setitem(base_models.MODELS, "toy", BaseModel("Toy", str(path), GEOMETRY))
    letters = np.random.default_rng(0).choice(list("abcdefgh "), 4000)
    books = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for book, part in zip(books, (letters[:2000], letters[2000:])):
        book.write_text("".join(part))
    return ["--texts", *books, "--keys", "4", "--results", tmp_path / "results"]


def folder(tmp_path):
    return tmp_path / "results" / "toy" / "beyond" / "needles"


def test_a_record_holds_what_a_pass_for_each_key_measures(toy, tmp_path, done):
    done("needles --model toy --method yarn", *toy)
    done("needles --model toy --method original --last --attention-factor 1.1", *toy)
    whole = json.loads((folder(tmp_path) / "yarn_s=2_books=2.json").read_text())
    last = folder(tmp_path) / "original_attention-factor=1.1_s=2_last_books=2.json"
    last = json.loads(last.read_text())
    assert whole["run"]["length"] == 1024 - 64
    assert {name: last["run"][name] for name in whole["comparable"]} == {
        name: whole["run"][name] for name in whole["comparable"]
    }
    assert last["run"]["read"] == 512
    models = [
        extend(random_model(max_position_embeddings=512), "yarn", 2),
        extend(random_model(max_position_embeddings=512), "original", 2, attention_factor=1.1),
    ]
    tokenizer = byte_tokenizer()
    for title in ("one", "two"):
        text = (tmp_path / f"{title}.txt").read_text()
        hidden = needles.needles(tokenizer, 4, whole["run"]["data"][title])
        room = 1024 - 64 - sum(len(needle.sentence) for needle in hidden)
        stack = needles.haystack(tokenizer.encode(text)[:room], hidden, [])
        assert len(stack.tokens) == 1024 - 64
        reads = [stack.tokens, stack.tokens[-(512 - 64) :]]
        for record, model, read in zip((whole, last), models, reads, strict=True):
            found = record["scores"]["keys"][title]
            assert [key["place"] for key in found] == list(stack.places)
            assert [key["place"] + key["distance"] for key in found] == [len(stack.tokens)] * 4
            expected = [
                token_losses(model, [*read, *each.question, *each.key])[-len(each.key) :].sum()
                for each in hidden
            ]
            assert [key["nats"] for key in found] == pytest.approx(expected, abs=2e-4)


def test_keys_within_l_begin_at_most_l_tokens_before_the_question(toy, tmp_path, done):
    done("needles --model toy --method yarn", *toy)
    scores = json.loads((folder(tmp_path) / "yarn_s=2_books=2.json").read_text())["scores"]
    keys = [key for of in scores["keys"].values() for key in of]
    near, far = scores["ranges"]
    for part, some in (
        (near, [key for key in keys if key["distance"] <= 512]),
        (far, [key for key in keys if key["distance"] > 512]),
    ):
        assert part["keys"] == len(some) == 4
        assert part["nats"] == pytest.approx(np.mean([key["nats"] for key in some]))
    assert (near["start"], far["start"]) == (0, 512)


def test_what_cannot_be_asked_is_refused_before_any_work(toy, tmp_path, done, refusal):
    assert "give a longer text" in refusal("needles --model toy --method yarn --factor 8", *toy)
    crowded = refusal("needles --model toy --method yarn", *toy[:-4], "--keys", "30", *toy[-2:])
    assert "or fewer --keys" in crowded
    assert not (tmp_path / "results").exists()
