"""Generated tasks and miniature benchmarks: the committed ones come out again; the splits share
nothing."""

import functools
import random

import pyarrow.parquet
import pytest

from core.errors import InputError
from eval import longbench, passkey
from experiments.kit.records import ROOT
from tests.models import byte_tokenizer
from tools.tiny.miniature import GENERATORS, Source, make, words

COMMITTED = ROOT / "models" / "tiny" / "benchmarks"
SENTENCES = (
    "The old house stood by the water. Nobody had lived in it for years! Who could say why? " * 200
)
TOKENIZER = byte_tokenizer()

# ---- the miniature benchmarks that models/tiny holds


def test_the_generator_writes_the_committed_benchmarks_and_nothing_over_them(call, tmp_path):
    line = ["--model", "tiny", "--output", tmp_path / "new", "--samples", 3, "--documents", 60]
    assert call("tools.tiny.miniature.write", *line)[0] == 0
    for folder, other in ((COMMITTED, tmp_path / "new"), (tmp_path / "new", COMMITTED)):
        for file in (file for file in folder.rglob("*") if file.is_file()):
            read = (
                pyarrow.parquet.read_table
                if file.suffix == ".parquet"
                else lambda path: path.read_bytes()
            )
            assert read(file) == read(other / file.relative_to(folder)), file
    status, _, err = call("tools.tiny.miniature.write", *line, "--seed", 1)
    assert status == 2 and str(tmp_path / "new") in err and len(err.splitlines()) == 1


@functools.cache
def rows(task):
    return longbench.load(task, COMMITTED / "longbench_e")


@pytest.mark.parametrize("task", longbench.TASKS)
def test_samples_fall_into_their_buckets_and_have_a_right_answer(task):
    assert [longbench.bucket(row["length"]) for row in rows(task)] == [
        b for b in longbench.BUCKETS for _ in range(3)
    ]
    for row in rows(task):
        assert longbench.score(
            task, row["answers"][0], row["answers"], row["all_classes"]
        ) == pytest.approx(1)


# ---- what tiny was trained on

LENGTH = 900  # bytes, as the tests' tokenizer has one token a byte
LENGTHS = {"longbench": 2400}  # whose own prompts take up to 1000


@functools.cache
def samples(kind, split="train", count=8, turns=4):
    source = Source(split, TOKENIZER, [SENTENCES])
    return [
        make(kind, random.Random(seed), source, LENGTHS.get(kind, LENGTH), turns)
        for seed in range(count)
    ]


@pytest.mark.parametrize("kind", GENERATORS)
def test_samples_fill_their_room_and_the_seed_decides_everything(kind):
    lengths = [len(sample.text.encode()) for sample in samples(kind)]
    room = LENGTHS.get(kind, LENGTH)
    assert max(lengths) <= room
    assert (
        sum(lengths) / len(lengths) > (0.5 if kind in LENGTHS else 0.7) * room
    )  # longbench's vary from half of it
    assert samples(kind, count=2) == samples(kind)[:2]  # generated again
    assert len({sample.text for sample in samples(kind)}) > 5  # the book repeats itself
    with pytest.raises(InputError, match="does not fit in 10 tokens"):
        make("recall", random.Random(0), Source("train", TOKENIZER, [SENTENCES]), 10)


def test_evaluation_data_and_needles_never_appear_in_training():
    def drawn(split):
        rng = random.Random(split)
        others = (
            {draw(rng, split) for _ in range(2000)} for draw in (words.number, words.identifier)
        )
        return words.keys(rng, split, 2000), *others

    (keys, numbers, names), (other_keys, other_numbers, other_names) = map(drawn, ("train", "eval"))
    parts, other_parts = (
        {part for key in each for part in key.lower().split("-")} for each in (keys, other_keys)
    )
    assert not parts & other_parts and not numbers & other_numbers and not names & other_names
    for kind in words.KINDS:
        assert not set(words.listed(kind, "train")) & set(words.listed(kind, "eval"))
    # RULER's keys are an adjective and a noun; its numbers and the paper's passkeys begin with no
    # 0.
    wonderwords = pytest.importorskip("wonderwords.random_word")
    first, second = (
        set(wonderwords._get_words_from_text_file(f"{kind}list.txt"))
        for kind in ("adjective", "noun")
    )
    assert not [
        key for key in keys if key.partition("-")[0] in first and key.partition("-")[2] in second
    ]
    assert not any(len(number) in (5, 7) and number[0] != "0" for number in numbers)
    assert passkey.sample(TOKENIZER.encode, 1000, 0.5, 0).answer not in numbers
