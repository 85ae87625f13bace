"""Keys in books end to end on a small random model."""

import pytest

from core.extend import extend
from eval.beyond import needles
from experiments.beyond import needles as of_experiment
from tests.files import read
from tests.models import byte_tokenizer, checkpoint, random_model, token_losses


def record(tmp_path, name):
    return read(tmp_path / f"results/toy/beyond/needles/{name}_books=2.json")


def test_a_record_holds_what_a_pass_for_each_key_measures(toy, tmp_path, done):
    line = "needles --model toy --keys 4 --method"
    done(f"{line} yarn", *toy)
    done(f"{line} original --last --attention-factor 1.1", *toy)
    whole = record(tmp_path, "yarn_s=2")
    last = record(tmp_path, "original_attention-factor=1.1_s=2_last")
    assert whole["run"]["length"] == 1024 - 64
    ranges = whole["scores"]["ranges"]
    assert [(each["start"], each["keys"]) for each in ranges] == [(0, 4), (512, 4)]
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
        for measured, model, tokens in zip((whole, last), models, reads, strict=True):
            found = measured["scores"]["keys"][title]
            assert [key["place"] for key in found] == list(stack.places)
            assert [key["place"] + key["distance"] for key in found] == [len(stack.tokens)] * 4
            expected = [
                token_losses(model, [*tokens, *each.question, *each.key])[-len(each.key) :].sum()
                for each in hidden
            ]
            assert [key["nats"] for key in found] == pytest.approx(expected, abs=2e-4)


def test_keys_within_l_begin_at_most_l_tokens_before_the_question():
    keys = [{"distance": d, "nats": float(d), "found": d < 600} for d in (600, 513, 512, 1)]
    near, far = of_experiment.scores({"A": keys}, 512)["ranges"]
    assert near == {"start": 0, "nats": 256.5, "found": 2, "keys": 2}
    assert far == {"start": 512, "nats": 556.5, "found": 1, "keys": 2}


def test_what_cannot_be_asked_is_refused_before_any_work(toy, tmp_path, done, refusal):
    line = "needles --model toy --method yarn --keys"
    assert "give a longer text" in refusal(f"{line} 4 --factor 8", *toy)
    assert "or fewer --keys" in refusal(f"{line} 30", *toy)
    short = checkpoint(tmp_path / "short", max_position_embeddings=64)  # which the question takes
    line = f"needles --model {short} --method original --last --factor 16 --keys"
    assert "with a longer context" in refusal(f"{line} 4", *toy)
    assert not (tmp_path / "results").exists()
