"""Loss by position end to end on a small random model."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from core.errors import InputError
from core.extend import extend
from core.rope import RopeGeometry
from experiments import base_models
from experiments.base_models.model import BaseModel
from experiments.beyond import blocks, loss_by_position
from tests.models import byte_tokenizer, checkpoint, random_model, token_losses

GEOMETRY = RopeGeometry(16, 10000.0, 1024)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A base model, random, with L = 1024, and the command that scores two books of random
    letters."""
    path = checkpoint(tmp_path / "model", max_position_embeddings=1024)
    monkeypatch.setitem(
        base_models.MODELS, "toy", BaseModel("Toy", str(path), GEOMETRY, n_hat={2: 4})
    )
    letters = np.random.default_rng(0).choice(list("abcdefgh "), 6000)
    books = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for book, part in zip(books, (letters[:3000], letters[3000:])):
        book.write_text("".join(part))
    return ["--texts", *books, "--results", tmp_path / "results"]


def test_records_hold_what_a_plain_loop_measures(toy, tmp_path, done):
    done("loss_by_position --model toy --method yarn pi", *toy)
    folder = tmp_path / "results" / "toy" / "beyond" / "loss_by_position"
    assert {file.name for file in folder.iterdir()} == {
        "yarn_s=2_books=2.json",
        "pi_s=2_books=2.json",
    }
    record = json.loads((folder / "yarn_s=2_books=2.json").read_text())["scores"]
    model = extend(random_model(max_position_embeddings=1024), "yarn", 2)
    for title in ("one", "two"):
        ids = byte_tokenizer().encode((tmp_path / f"{title}.txt").read_text())[:2049]
        of_blocks = token_losses(model, ids).reshape(16, 128).mean(axis=1)
        assert record["blocks"][title] == pytest.approx(of_blocks, abs=1e-4)
    means = np.mean(list(record["blocks"].values()), axis=0)
    assert [bucket["mean"] for bucket in record["buckets"]] == pytest.approx(list(means))
    ranges = [(each["start"], each["end"]) for each in record["ranges"]]
    assert ranges == [(0, 1024), (1024, 1536), (1536, 2048)]


def test_a_row_stands_beside_a_record_whose_books_are_found_under_other_titles(
    toy, tmp_path, done, refusal
):
    done("loss_by_position --model toy --method yarn", *toy)
    folder = tmp_path / "results" / "toy" / "beyond" / "loss_by_position"
    record = folder / "yarn_s=2_books=2.json"
    one, two = ((tmp_path / f"{title}.txt").read_text() for title in ("one", "two"))
    table = pyarrow.table({"title": ["I", "II", "II"], "text": [two, one, "another"]})
    (tmp_path / "books").mkdir()
    pyarrow.parquet.write_table(table, tmp_path / "books" / "all.parquet")
    line = ["loss_by_position --model toy --method pi", *toy[-2:], "--books-of", record, "--texts"]
    assert "'two'" in refusal(*line, tmp_path / "one.txt")
    done(*line, tmp_path / "books")
    beside = json.loads((folder / "pi_s=2_books=2.json").read_text())
    assert beside["run"]["data"] == json.loads(record.read_text())["run"]["data"]


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
    for row in made["ranges"]:
        assert row["tokens"] == row["end"] - row["start"] > 0
    for rows in (made["ranges"], made["buckets"]):
        assert sum(row["tokens"] for row in rows) == length
    first, *_, last = made["buckets"]
    assert first["mean"] == losses[: bucket // block].mean()
    assert last["mean"] == losses[-bucket // block :].mean()


@pytest.mark.parametrize(("context_length", "length"), [(8192, 8274), (16, 32)])
def test_lengths_without_blocks_are_refused(context_length, length):
    with pytest.raises(InputError, match=r"L = \d+ and L' = \d+ cannot be divided"):
        blocks.divisions(context_length, length)
