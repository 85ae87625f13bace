"""Generated tasks and miniature benchmarks: every answer is found again by other means; the splits share nothing."""

import functools
import random
import re

import pyarrow.parquet
import pytest

from core.errors import InputError
from eval import longbench, open_llm_files, passkey
from experiments.kit.records import ROOT
from tests.models import byte_tokenizer
from tools.tiny.miniature import GENERATORS, Source, make, words

COMMITTED = ROOT / "models" / "tiny" / "benchmarks"
SENTENCES = "The old house stood by the water. Nobody had lived in it for years! Who could say why? " * 200
TOKENIZER = byte_tokenizer()
FACTS = {
    "Where does (.+) live": "{} lives in (\\w+)", "Where was (.+) born": "{} was born in (\\w+)",
    "What is the trade of (.+)\\?": "{} works as a (\\w+)", "What animal does (.+) keep": "{} keeps a (\\w+)",
    "What was (.+) given": "{} was given a (\\w+)", "What colour does (.+) like": "favourite colour of {} is (\\w+)",
}  # fmt: skip


def answer(question: str, text: str) -> list[str]:
    """What the text says, read by regular expressions."""
    for asks, says in FACTS.items():
        if match := re.search(asks, question):
            person = match[1]
            if friend := re.fullmatch("the best friend of (.+)", person):
                (person,) = re.findall(rf"best friend of {friend[1]} is (\w+)", text)
            return re.findall(says.format(person), text)
    raise AssertionError(question)


# ---- the miniature benchmarks that models/tiny holds


def test_the_generator_writes_the_committed_benchmarks_and_nothing_over_them(call, tmp_path):
    line = ["--model", "tiny", "--output", tmp_path / "new", "--samples", 3, "--documents", 60]
    assert call("tools.tiny.miniature.write", *line)[0] == 0
    for folder, other in ((COMMITTED, tmp_path / "new"), (tmp_path / "new", COMMITTED)):
        for file in (file for file in folder.rglob("*") if file.is_file()):
            read = pyarrow.parquet.read_table if file.suffix == ".parquet" else lambda path: path.read_bytes()
            assert read(file) == read(other / file.relative_to(folder)), file
    status, _, err = call("tools.tiny.miniature.write", *line, "--seed", 1)
    assert status == 2 and str(tmp_path / "new") in err and len(err.splitlines()) == 1


@functools.cache
def rows(task):
    return longbench.load(task, COMMITTED / "longbench_e")


@pytest.mark.parametrize("task", longbench.TASKS)
def test_samples_fall_into_their_buckets_and_have_a_right_answer(task):
    assert [longbench.bucket(row["length"]) for row in rows(task)] == [b for b in longbench.BUCKETS for _ in range(3)]
    for row in rows(task):
        assert longbench.score(task, row["answers"][0], row["answers"], row["all_classes"]) == pytest.approx(1)


def of_document(row):
    return answer(row["input"], row["context"])


def of_summary(row):
    return [" ".join(re.findall(r"Main point: ([^.]+\.)", row["context"]))]


def of_type(row):
    examples = dict(re.findall(r"Question: (\w+) [^\n]*\nType: (\w+)", row["context"]))
    assert set(examples.values()) == set(row["all_classes"])
    return [examples[re.search(r"Question: (\w+)", row["input"])[1]]]


def of_trivia(row):
    passage, question = row["input"].split("\nQuestion:\n")
    return answer(question, passage)


def of_dialogue(row):
    ((speaker, promise),) = re.findall(r"(\w+): I will ([^\n]+)", row["input"])
    return [f"{speaker} will {promise}"]


def paragraphs(row):
    return re.split(r"\n*Paragraph \d+: ", row["context"])[1:]


def of_count(row):
    return [str(len(set(paragraphs(row))))]


def of_retrieval(row):
    return [f"Paragraph {i}" for i, text in enumerate(paragraphs(row), 1) if text.startswith(row["input"])]


def of_code(row):
    lines = [line for line in (row["context"] + row["input"]).split("\n") if line]
    head = lines[: lines.index("# second.py")]
    return [head[head.index(lines[-1]) + 1]]


ANSWERS = {
    "qasper": of_document, "multifieldqa_en": of_document, "hotpotqa": of_document, "2wikimqa": of_document,
    "gov_report": of_summary, "multi_news": of_summary, "trec": of_type, "triviaqa": of_trivia, "samsum": of_dialogue,
    "passage_count": of_count, "passage_retrieval_en": of_retrieval, "lcc": of_code, "repobench-p": of_code,
}  # fmt: skip


@pytest.mark.parametrize("task", ANSWERS)
def test_the_answer_stands_in_the_text(task):
    for row in rows(task):
        assert ANSWERS[task](row) == row["answers"]


def test_open_llm_documents_state_the_right_answer_alone():
    tables = {name: open_llm_files.read(each, COMMITTED / "open_llm") for name, each in open_llm_files.TASKS.items()}
    for row in tables["arc_challenge"]["test"].to_pylist():
        right = row["choices"]["text"][row["choices"]["label"].index(row["answerKey"])]
        assert answer(row["question"], row["question"]) == [right]
    for row in tables["mmlu"]["test"].to_pylist():
        assert answer(row["question"], row["question"]) == [row["choices"][row["answer"]]]
        assert len(set(row["choices"])) == 4
    for row in tables["truthfulqa"]["validation"].to_pylist():
        (right,) = answer(row["question"], row["question"])
        for text, label in zip(row["mc2_targets"]["choices"], row["mc2_targets"]["labels"]):
            assert (right.lower() in text.lower()) == bool(label)
    for row in tables["hellaswag"]["validation"].to_pylist():
        assert len(set(row["endings"])) == 4 and row["endings"][int(row["label"])][-1] in ".!?"


# ---- what tiny was trained on

LENGTH = 900  # bytes, as the tests' tokenizer has one token a byte
LENGTHS = {"longbench": 2400}  # whose own prompts take up to 1000


@functools.cache
def samples(kind, split="train", count=8, turns=4):
    source = Source(split, TOKENIZER, [SENTENCES])
    return [make(kind, random.Random(seed), source, LENGTHS.get(kind, LENGTH), turns) for seed in range(count)]


@pytest.mark.parametrize("kind", GENERATORS)
def test_samples_fill_their_room_and_the_seed_decides_everything(kind):
    lengths = [len(sample.text.encode()) for sample in samples(kind)]
    room = LENGTHS.get(kind, LENGTH)
    assert max(lengths) <= room
    assert sum(lengths) / len(lengths) > (0.5 if kind in LENGTHS else 0.7) * room  # longbench's vary from half of it
    assert samples(kind, count=2) == samples(kind)[:2]  # generated again
    assert len({sample.text for sample in samples(kind)}) > 5  # the book repeats itself
    with pytest.raises(InputError, match="does not fit in 10 tokens"):
        make("recall", random.Random(0), Source("train", TOKENIZER, [SENTENCES]), 10)


def test_evaluation_data_and_needles_never_appear_in_training():
    def drawn(split):
        rng = random.Random(split)
        keys = words.keys(rng, split, 2000)
        return (
            keys,
            {words.number(rng, split) for _ in range(2000)},
            {words.identifier(rng, split) for _ in range(2000)},
        )

    (keys, numbers, names), (other_keys, other_numbers, other_names) = map(drawn, words.SPLITS)
    parts, other_parts = ({part for key in each for part in key.lower().split("-")} for each in (keys, other_keys))
    assert not parts & other_parts and not numbers & other_numbers and not names & other_names
    for kind in words.KINDS:
        assert not set(words.listed(kind, "train")) & set(words.listed(kind, "eval"))
    # RULER's keys are an adjective and a noun; its numbers and the paper's passkeys begin with no 0.
    wonderwords = pytest.importorskip("wonderwords.random_word")
    first, second = (set(wonderwords._get_words_from_text_file(f"{kind}list.txt")) for kind in ("adjective", "noun"))
    assert not [key for key in keys if key.partition("-")[0] in first and key.partition("-")[2] in second]
    assert not any(len(number) in (5, 7) and number[0] != "0" for number in numbers)
    assert passkey.sample(TOKENIZER.encode, 1000, 0.5, 0).answer not in numbers
