"""The generated tasks: every answer is found again by other means, and the two splits share nothing."""

import functools
import random
import re
from collections import Counter

import pytest

from tests.models import byte_tokenizer
from tools.tiny.miniature import GENERATORS, Setting, make, words, written

BOOK = "The old house stood by the water. Nobody had lived in it for years! Who could say why? " * 200
LENGTH = 900  # of bytes, as the tests' tokenizer has one token a byte
LENGTHS = {"longbench": 2400}  # whose own prompts take up to 1000


@functools.cache
def samples(kind, split="train", count=40, turns=4):
    setting = Setting(split, byte_tokenizer(), [BOOK])
    return [make(kind, random.Random(seed), setting, LENGTHS.get(kind, LENGTH), turns) for seed in range(count)]


@pytest.mark.parametrize("split", words.SPLITS)
@pytest.mark.parametrize("kind", GENERATORS)
def test_samples_fit_and_fill_their_room(kind, split):
    lengths = [len(written(sample).encode()) for sample in samples(kind, split)]
    room = LENGTHS.get(kind, LENGTH)
    assert max(lengths) <= room
    assert sum(lengths) / len(lengths) > (0.6 if kind in LENGTHS else 0.8) * room  # longbench's vary from half of it


@pytest.mark.parametrize("kind", GENERATORS)
def test_the_seed_decides_everything(kind):
    assert samples(kind)[:3] == samples(kind, count=3)  # made anew
    assert len({written(sample) for sample in samples(kind)}) > 25  # the book repeats itself


def test_recall_asks_for_the_number_of_the_key():
    for sample in samples("recall"):
        for turn in sample.turns:
            keys = [
                key for key in re.findall(r"[\w-]+", turn.question) if re.search(rf"{key}\W[^.]*\d", sample.context)
            ]
            said = {number for key in keys for number in re.findall(rf"\b{key}\b[^.]*?(\d+)", sample.context)}
            assert turn.answers[0] in said
        numbers = re.findall(r"\d+", sample.context)
        assert len(set(numbers)) >= len({turn.answers for turn in sample.turns})


def test_passkey_is_the_only_number():
    for sample in samples("passkey"):
        assert set(re.findall(r"\d+", sample.context)) == set(sample.answers)


def test_tracking_follows_every_assignment():
    for sample in samples("tracking"):
        values: dict[str, str] = {}
        for name, value in re.findall(r"VAR (\w+) = (?:VAR )?(\w+)\.", sample.context):
            values[name] = values.get(value, value)
        for turn in sample.turns:
            asked = re.search(r"value (\d+)", turn.question)[1]
            assert turn.answers[0].split() == [name for name, value in values.items() if value == asked]


def test_counting_counts():
    for sample in samples("counting"):
        row = re.search(r"List: ([^.]*)\.", sample.context)[1].split()
        (winner, most), *others = Counter(row).most_common()
        assert all(count < most for _, count in others)
        for turn in sample.turns:
            often = re.search(r"How often does (\w+)", turn.question)
            assert turn.answers[0] == (f"{row.count(often[1])} times" if often else winner)


def test_answering_finds_the_fact():
    says = {
        "Where does {} live?": "{} lives in (\\w+)", "Where was {} born?": "{} was born in (\\w+)",
        "What is the trade of {}?": "{} works as a (\\w+)", "What animal does {} keep?": "{} keeps a (\\w+)",
        "What was {} given?": "{} was given a (\\w+)",
        "What colour does {} like best?": "favourite colour of {} is (\\w+)",
    }  # fmt: skip
    hops = 0
    for sample in samples("answering", turns=6):
        for turn in sample.turns:
            for question, fact in says.items():
                found = re.search(re.escape(question).replace(r"\{\}", "(.+)"), turn.question)
                if found:
                    person = found[1]
                    if person.startswith("the best friend of "):
                        hops += 1
                        friends = re.findall(rf"The {person[4:]} is (\w+)", sample.context)
                        (person,) = friends
                    assert re.findall(fact.format(person), sample.context) == [turn.answers[0]]
                    break
            else:
                pytest.fail(turn.question)
    assert hops > 5


def test_evaluation_data_never_appears_in_training():
    def drawn(split):
        rng = random.Random(split)
        keys = {part for key in words.keys(rng, split, 4000) for part in key.lower().split("-")}
        numbers = {words.number(rng, split) for _ in range(4000)}
        names = {words.identifier(rng, split) for _ in range(4000)}
        return keys, numbers, names

    for train, evaluation in zip(drawn("train"), drawn("eval")):
        assert train and evaluation and not train & evaluation
    for kind in words.KINDS:
        train, evaluation = (set(words.listed(kind, split)) for split in words.SPLITS)
        assert len(evaluation) >= 5 and not train & evaluation
