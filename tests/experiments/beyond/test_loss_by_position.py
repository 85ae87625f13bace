"""Loss by position end to end on a small random model, killed and resumed for real."""

import json

import numpy as np
import pytest

from core.errors import InputError
from core.extend import extend
from core.rope import RopeGeometry
from experiments import base_models
from experiments.base_models.model import Model
from experiments.beyond import blocks, loss_by_position
from tests.models import byte_tokenizer, checkpoint, random_model, token_losses

GEOMETRY = RopeGeometry(16, 10000.0, 1024)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A base model, random, with L = 1024, and the command that scores two books of random
    letters."""
    path = checkpoint(tmp_path / "model", max_position_embeddings=1024)
    monkeypatch.setitem(base_models.MODELS, "toy", Model("Toy", str(path), GEOMETRY, n_hat={2: 4}))
    letters = np.random.default_rng(0).choice(list("abcdefgh "), 6000)
    books = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for book, part in zip(books, (letters[:3000], letters[3000:])):
        book.write_text("".join(part))
    return ["--texts", *books, "--results", tmp_path / "results"]


def records(results):
    folder = results / "toy" / "beyond" / "loss_by_position"
    return {file.stem: json.loads(file.read_text()) for file in folder.iterdir()}


def plain(book):
    """The loss of each token by the extended model."""
    model = extend(random_model(max_position_embeddings=1024), "yarn", 2)
    return token_losses(model, byte_tokenizer().encode(book.read_text())[:2049])


def test_records_hold_what_a_plain_loop_measures(toy, tmp_path, call):
    assert call("loss_by_position", "--model", "toy", "--method", "yarn", "pi", *toy)[0] == 0
    written = records(tmp_path / "results")
    assert set(written) == {"yarn_s=2_books=2", "pi_s=2_books=2"}
    record = written["yarn_s=2_books=2"]["scores"]
    for title in ("one", "two"):
        of_blocks = plain(tmp_path / f"{title}.txt").reshape(16, 128).mean(axis=1)
        assert record["blocks"][title] == pytest.approx(of_blocks, abs=1e-4)
    blocks = np.array(list(record["blocks"].values()))
    assert [b["mean"] for b in record["buckets"]] == pytest.approx(list(blocks.mean(axis=0)))
    assert [(s["start"], s["end"]) for s in record["ranges"]] == [
        (0, 1024),
        (1024, 1536),
        (1536, 2048),
    ]
    assert all(s["low"] <= s["mean"] <= s["high"] for s in record["buckets"])
    assert written["yarn_s=2_books=2"]["run"]["model"]["sha256"].keys() == {"tensors"}


@pytest.mark.parametrize(
    ("context_length", "length", "block", "bucket"),
    [(8192, 16384, 128, 1024), (1000, 2000, 125, 125), (1024, 1152, 64, 128)],
)
def test_blocks_and_buckets_divide_what_lies_within_l_and_beyond(
    context_length, length, block, bucket
):
    assert blocks.divisions(context_length, length) == (block, bucket)
    losses = np.arange(length // block, dtype=float)
    made = loss_by_position.scores({"a": losses.tolist()}, context_length, length)
    assert [row["tokens"] for row in made["ranges"]] == [
        row["end"] - row["start"] for row in made["ranges"]
    ]
    assert (
        sum(row["tokens"] for row in made["ranges"])
        == sum(row["tokens"] for row in made["buckets"])
        == length
    )
    assert all(row["tokens"] for row in made["ranges"])
    first, *_, last = made["buckets"]
    assert (
        first["mean"] == losses[: bucket // block].mean()
        and last["mean"] == losses[-bucket // block :].mean()
    )


@pytest.mark.parametrize(("context_length", "length"), [(8192, 8274), (16, 32)])
def test_lengths_without_blocks_are_refused(context_length, length):
    with pytest.raises(InputError, match=r"L = \d+ and L' = \d+ cannot be divided"):
        blocks.divisions(context_length, length)
