"""Generated tasks and miniature benchmarks: the committed ones come out again; the splits share
nothing."""

import random
import re

import pyarrow.parquet
import pytest

from eval import longbench
from records import ROOT
from tests.models import byte_tokenizer
from tools.tiny.miniature import GENERATORS, Source, make, words

COMMITTED = ROOT / "models" / "tiny" / "benchmarks"
SENTENCES = (
    "The old house stood by the water. Nobody had lived in it for years! Who could say why? " * 200
)
TOKENIZER = byte_tokenizer()

# ---- the miniature benchmarks that models/tiny holds


def contents(folder):
    """{path in the folder: rows of a table, or bytes}"""
    found = {}
    for file in folder.rglob("*.*"):
        name = file.relative_to(folder)
        if file.suffix == ".parquet":
            found[name] = pyarrow.parquet.read_table(file).to_pylist()
        else:
            found[name] = file.read_bytes()
    return found


def test_the_generator_writes_the_committed_benchmarks_and_nothing_over_them(
    done, refusal, tmp_path
):
    line = "tools.tiny.miniature.write --model tiny --samples 3 --documents 60 --output"
    done(line, tmp_path / "new")
    assert contents(tmp_path / "new") == contents(COMMITTED)
    assert str(tmp_path / "new") in refusal(line, tmp_path / "new", "--seed", 1)


@pytest.mark.parametrize("task", longbench.TASKS)
def test_samples_fall_into_their_buckets_and_have_a_right_answer(task):
    rows = longbench.load(task, COMMITTED / "longbench_e")
    buckets = [longbench.bucket(row["length"]) for row in rows]
    assert buckets == [name for name in longbench.BUCKETS for _ in range(3)]
    for row in rows:
        answers = row["answers"]
        assert longbench.score(task, answers[0], answers, row["all_classes"]) == pytest.approx(1)


# ---- what tiny was trained on

LENGTH = 900  # bytes, as the tests' tokenizer has one token a byte
LENGTHS = {"longbench": 2400}  # whose own prompts take up to 1000


def samples(kind, count=8):
    source = Source("train", TOKENIZER, [SENTENCES])
    room = LENGTHS.get(kind, LENGTH)
    return [make(kind, random.Random(seed), source, room, 4) for seed in range(count)]


@pytest.mark.parametrize("kind", GENERATORS)
def test_samples_fill_their_room_and_the_seed_decides_everything(kind):
    texts = [sample.text for sample in samples(kind)]
    lengths = [len(text.encode()) for text in texts]
    room = LENGTHS.get(kind, LENGTH)
    assert max(lengths) <= room
    filled = 0.5 if kind in LENGTHS else 0.7  # longbench's vary from half of it
    assert sum(lengths) / len(lengths) > filled * room
    assert [sample.text for sample in samples(kind, count=2)] == texts[:2]
    assert len(set(texts)) > 5  # the book repeats itself


def test_evaluation_data_and_needles_never_appear_in_training():
    def drawn(split):
        rng = random.Random(split)
        parts = {part for key in words.keys(rng, split, 2000) for part in key.lower().split("-")}
        for _ in range(2000):
            parts |= {words.number(rng, split), words.identifier(rng, split)}
        return parts

    trained = drawn("train")
    assert trained.isdisjoint(drawn("eval"))
    for kind in words.KINDS:
        assert set(words.listed(kind, "train")).isdisjoint(words.listed(kind, "eval"))
    # RULER's numbers and the paper's passkeys begin with no 0.
    assert not [word for word in trained if re.fullmatch(r"[1-9]\d{4}(\d\d)?", word)]


def test_keys_of_training_are_none_of_rulers():
    """Which are an adjective and a noun."""
    wonderwords = pytest.importorskip("wonderwords.random_word")
    adjectives = set(wonderwords._get_words_from_text_file("adjectivelist.txt"))
    nouns = set(wonderwords._get_words_from_text_file("nounlist.txt"))
    for key in words.keys(random.Random("train"), "train", 2000):
        first, _, second = key.partition("-")
        assert not (first in adjectives and second in nouns)
