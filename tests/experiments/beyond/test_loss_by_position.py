"""Loss by position end to end on a small random model."""

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from core.errors import InputError
from core.extend import extend
from experiments.beyond import blocks, loss_by_position
from tests.files import read
from tests.models import byte_tokenizer, random_model, token_losses

FOLDER = "results/toy/beyond/loss_by_position"


def test_records_hold_what_a_plain_loop_measures(toy, tmp_path, done):
    done("loss_by_position --model toy --method yarn pi", *toy)
    folder = tmp_path / FOLDER
    assert {file.name for file in folder.iterdir()} == {
        "yarn_s=2_books=2.json",
        "pi_s=2_books=2.json",
    }
    record = read(folder / "yarn_s=2_books=2.json")["scores"]
    model = extend(random_model(max_position_embeddings=512), "yarn", 2)
    for title in ("one", "two"):
        ids = byte_tokenizer().encode((tmp_path / f"{title}.txt").read_text())[:1025]
        of_blocks = token_losses(model, ids).reshape(8, 128).mean(axis=1)
        assert record["blocks"][title] == pytest.approx(of_blocks, abs=1e-4)
    means = np.mean(list(record["blocks"].values()), axis=0)
    assert [bucket["mean"] for bucket in record["buckets"]] == pytest.approx(list(means))
    ranges = [(each["start"], each["end"]) for each in record["ranges"]]
    assert ranges == [(0, 512), (512, 768), (768, 1024)]


def test_a_row_stands_beside_a_record_whose_books_are_found_under_other_titles(
    toy, tmp_path, done, refusal
):
    done("loss_by_position --model toy --method yarn", *toy)
    folder = tmp_path / FOLDER
    record = folder / "yarn_s=2_books=2.json"
    one, two = ((tmp_path / f"{title}.txt").read_text() for title in ("one", "two"))
    table = pyarrow.table({"title": ["I", "II", "II"], "text": [two, one, "another"]})
    (tmp_path / "books").mkdir()
    pyarrow.parquet.write_table(table, tmp_path / "books" / "all.parquet")
    line = ["loss_by_position --model toy --method pi", *toy[-2:], "--books-of", record, "--texts"]
    assert "'two'" in refusal(*line, tmp_path / "one.txt")
    done(*line, tmp_path / "books")
    beside = read(folder / "pi_s=2_books=2.json")
    assert beside["run"]["data"] == read(record)["run"]["data"]


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
