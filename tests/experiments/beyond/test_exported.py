"""An export in a process of its own gives the perplexity that the model in memory gives."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from core.extend import extend
from tests.models import byte_tokenizer, checkpoint, random_model


@pytest.fixture
def book(tmp_path):
    file = tmp_path / "book.txt"
    file.write_text("".join(np.random.default_rng(0).choice(list("abcdefgh "), 2000)))
    return file


def plain_perplexity(book, method):
    """Of the last 1,024 of 1,200 tokens, all logits at once."""
    model = extend(random_model(max_position_embeddings=1024), method, 2)
    tokens = byte_tokenizer()(book.read_text(), add_special_tokens=False, return_tensors="pt").input_ids[:, :1200]
    with torch.inference_mode():
        logits = model(tokens).logits[0, -1025:-1]
    return torch.nn.functional.cross_entropy(logits, tokens[0, -1024:]).exp().item()


def test_the_record_says_how_far_the_two_are_apart(tmp_path, call, book):
    model = checkpoint(tmp_path / "toy", max_position_embeddings=1024)
    options = ["--model", model, "--text", book, "--tokens", "1200", "--results", tmp_path / "results"]
    status, out, err = call("exported", *options, "--method", "pi")
    assert status == 0, err
    scores = json.loads(Path(out.strip()).read_text())["scores"]
    plain = plain_perplexity(book, "pi")
    assert scores["stock"] == pytest.approx(plain, rel=1e-5) and scores["in_memory"] == pytest.approx(plain, rel=1e-5)
    assert scores["relative_difference"] < 1e-5
    assert abs(plain_perplexity(book, "original") / plain - 1) > 1e-4  # another scaling would be seen
    assert "done already" in call("exported", *options, "--method", "pi")[1]


def test_too_few_tokens_are_refused(tmp_path, call):
    status, _, err = call("exported", "--scale", "tiny", "--tokens", "1024", "--results", tmp_path)
    assert status == 2 and "more --tokens" in err and not list(tmp_path.iterdir())
