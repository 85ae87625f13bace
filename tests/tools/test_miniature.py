"""Generated tasks and miniature benchmarks: every answer is found again by other means; the splits share nothing."""

import functools
import json
import random
import re
from collections import Counter

import pytest

from core.errors import InputError
from eval import longbench, passkey
from tests.models import byte_tokenizer
from tools.tiny.miniature import GENERATORS, Setting, make, words
from tools.tiny.miniature import longbench as small
from tools.tiny.miniature import open_llm as choices

BOOK = "The old house stood by the water, and nobody had lived in it for many years now. Who could say why the " * 300
SENTENCES = "The old house stood by the water. Nobody had lived in it for years! Who could say why? " * 200
L = 2000  # bytes, as the tests' tokenizer has one token a byte
TOKENIZER = byte_tokenizer()
SETTING = Setting("eval", TOKENIZER, [BOOK])
FACTS = {
    "Where does (.+) live": "{} lives in (\\w+)", "Where was (.+) born": "{} was born in (\\w+)",
    "What is the trade of (.+)\\?": "{} works as a (\\w+)", "What animal does (.+) keep": "{} keeps a (\\w+)",
    "What was (.+) given": "{} was given a (\\w+)", "What colour does (.+) like": "favourite colour of {} is (\\w+)",
}  # fmt: skip


def answer(question: str, text: str) -> list[str]:
    """What the text says, read by regular expressions."""
    for asks, says in FACTS.items():
        if found := re.search(asks, question):
            person = found[1]
            if friend := re.fullmatch("the best friend of (.+)", person):
                (person,) = re.findall(rf"best friend of {friend[1]} is (\w+)", text)
            return re.findall(says.format(person), text)
    raise AssertionError(question)


@pytest.fixture(scope="module")
def made():
    return {task: small.samples(task, SETTING, L, 2, seed=1) for task in longbench.TASKS}


@pytest.mark.parametrize("task", longbench.TASKS)
def test_samples_load_and_fall_into_their_buckets(task, made, tmp_path):
    (tmp_path / f"{task}_e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made[task]))
    rows = longbench.load(task, tmp_path)
    assert rows == made[task]
    assert [longbench.bucket(row["length"]) for row in rows] == [b for b in longbench.BUCKETS for _ in range(2)]
    for row in rows:
        tokens = len(TOKENIZER(longbench.prompt(task, row)).input_ids)
        assert row["length"] == round(tokens * 4000 / L)
        assert longbench.score(task, row["answers"][0], row["answers"], row["all_classes"]) == pytest.approx(1)
    assert len({row["_id"] for row in rows}) == len({row["context"] for row in rows}) == 6
    assert small.samples(task, SETTING, L, 2, seed=1) == rows


@pytest.mark.parametrize("task", ["qasper", "multifieldqa_en", "hotpotqa", "2wikimqa"])
def test_questions_have_the_answer_that_stands_in_the_text(task, made):
    for row in made[task]:
        assert answer(row["input"], row["context"]) == row["answers"]
        assert ("best friend" in row["input"]) == (task in ("hotpotqa", "2wikimqa"))


@pytest.mark.parametrize("task", ["gov_report", "multi_news"])
def test_summaries_are_the_marked_sentences_in_order(task, made):
    for row in made[task]:
        assert " ".join(re.findall(r"Main point: ([^.]+\.)", row["context"])) == row["answers"][0]


def test_types_follow_the_examples(made):
    for row in made["trec"]:
        examples = dict(re.findall(r"Question: (\w+) [^\n]*\nType: (\w+)", row["context"]))
        asked = re.search(r"Question: (\w+)", row["input"])[1]
        assert [examples[asked]] == row["answers"] and set(examples.values()) == set(row["all_classes"])


def test_trivia_answers_from_the_last_passage(made):
    for row in made["triviaqa"]:
        passage, question = row["input"].split("\nQuestion:\n")
        assert answer(question, passage) == row["answers"]


def test_dialogues_promise_what_is_summed_up(made):
    for row in made["samsum"]:
        ((speaker, promise),) = re.findall(r"(\w+): I will ([^\n]+)", row["input"])
        assert row["answers"] == [f"{speaker} will {promise}"]


def test_paragraphs_are_counted_and_found(made):
    for row in made["passage_count"]:
        paragraphs = re.split(r"\n*Paragraph \d+: ", row["context"])[1:]
        assert row["answers"] == [str(len(set(paragraphs)))]
    for row in made["passage_retrieval_en"]:
        paragraphs = re.split(r"\n*Paragraph \d+: ", row["context"])[1:]
        (number,) = [i for i, text in enumerate(paragraphs, 1) if text.startswith(row["input"])]
        assert row["answers"] == [f"Paragraph {number}"]


@pytest.mark.parametrize("task", ["lcc", "repobench-p"])
def test_the_next_line_is_the_one_that_came_next_before(task, made):
    for row in made[task]:
        lines = [line for line in (row["context"] + row["input"]).split("\n") if line]
        head = lines[: lines.index("# second.py")]
        assert row["answers"] == [head[head.index(lines[-1]) + 1]]


def test_open_llm_documents_state_the_right_answer_alone():
    for row in choices.documents("arc_challenge", SETTING, 30, 0):
        right = row["choices"]["text"][row["choices"]["label"].index(row["answerKey"])]
        assert answer(row["question"], row["question"]) == [right]
    for row in choices.documents("mmlu", SETTING, 30, 0):
        assert answer(row["question"], row["question"]) == [row["choices"][row["answer"]]]
        assert len(set(row["choices"])) == 4
    for row in choices.documents("truthfulqa", SETTING, 30, 0):
        (right,) = answer(row["question"], row["question"])
        for text, label in zip(row["mc2_targets"]["choices"], row["mc2_targets"]["labels"]):
            assert (right.lower() in text.lower()) == bool(label)


def test_the_right_ending_is_how_the_book_goes_on():
    book = " ".join(
        f"A {a} and a {b} went out to find the old {c}. "
        f"They met a {b} who knew nothing at all of the {a} nor of the {c}."
        for a, b, c in (random.Random(i).sample(words.listed("animal", "train"), 3) for i in range(300))
    )
    for row in choices.documents("hellaswag", Setting("eval", TOKENIZER, [book]), 20, 0):
        whole = " ".join((row["ctx_a"], row["ctx_b"], row["endings"][int(row["label"])]))
        assert whole in book
        wrong = [" ".join((row["ctx_a"], row["ctx_b"], ending)) in book for ending in row["endings"]]
        assert wrong.count(True) == 1


LENGTH = 900  # bytes
LENGTHS = {"longbench": 2400}  # whose own prompts take up to 1000


@functools.cache
def samples(kind, split="train", count=40, turns=4):
    setting = Setting(split, TOKENIZER, [SENTENCES])
    return [make(kind, random.Random(seed), setting, LENGTHS.get(kind, LENGTH), turns) for seed in range(count)]


@pytest.mark.parametrize("split", words.SPLITS)
@pytest.mark.parametrize("kind", GENERATORS)
def test_samples_fit_and_fill_their_room(kind, split):
    lengths = [len(sample.text.encode()) for sample in samples(kind, split)]
    room = LENGTHS.get(kind, LENGTH)
    assert max(lengths) <= room
    assert sum(lengths) / len(lengths) > (0.6 if kind in LENGTHS else 0.8) * room  # longbench's vary from half of it


@pytest.mark.parametrize("kind", GENERATORS)
def test_the_seed_decides_everything(kind):
    assert samples(kind)[:3] == samples(kind, count=3)  # made anew
    assert len({sample.text for sample in samples(kind)}) > 25  # the book repeats itself


def test_passkey_is_the_only_number():
    for sample in samples("passkey"):
        assert set(re.findall(r"\d+", sample.context)) == {turn.answer for turn in sample.turns}


def test_tracking_follows_every_assignment():
    for sample in samples("tracking"):
        values: dict[str, str] = {}
        for name, value in re.findall(r"VAR (\w+) = (?:VAR )?(\w+)\.", sample.context):
            values[name] = values.get(value, value)
        for turn in sample.turns:
            asked = re.search(r"value (\d+)", turn.question)[1]
            assert turn.answer.split() == [name for name, value in values.items() if value == asked]


def test_counting_counts():
    for sample in samples("counting"):
        row = re.search(r"List: ([^.]*)\.", sample.context)[1].split()
        (winner, most), *others = Counter(row).most_common()
        assert all(count < most for _, count in others)
        for turn in sample.turns:
            often = re.search(r"How often does (\w+)", turn.question)
            assert turn.answer == (f"{row.count(often[1])} times" if often else winner)


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


def test_needles_of_the_passkey_and_ruler_prompts_are_never_drawn_in_training():
    wonderwords = pytest.importorskip("wonderwords.random_word")
    first, second = (set(wonderwords._get_words_from_text_file(f"{kind}list.txt")) for kind in ("adjective", "noun"))
    rng = random.Random(0)
    for key in words.keys(rng, "train", 5000):
        head, _, tail = key.partition("-")
        assert not (head in first and tail in second), key
    drawn = {words.number(rng, "train") for _ in range(20000)}
    assert not any(len(number) in (5, 7) and number[0] != "0" for number in drawn)
    grid = {passkey.sample(TOKENIZER.encode, 1000, depth / 4, seed).answer for depth in range(5) for seed in range(20)}
    assert len(grid) > 90 and not grid & drawn


def test_a_length_that_is_too_short_is_refused():
    with pytest.raises(InputError, match="does not fit in 10 tokens"):
        make("recall", random.Random(0), Setting("train", TOKENIZER, [SENTENCES]), 10)
