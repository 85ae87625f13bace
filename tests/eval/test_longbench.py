"""LongBench-E against hand-worked cases, the digests of the official prompts and slow versions
written here."""

import hashlib
import importlib.util
import json
import zipfile
from pathlib import Path

import pytest
import yaml

from core.errors import InputError
from eval import hub, longbench
from eval.longbench import TASKS, aggregate, load, prompt, score, truncate_middle
from tests.models import byte_tokenizer

SAMPLE = {
    "input": "Why?",
    "context": "It {is} so.",
    "answers": ["x"],
    "length": 3,
    "all_classes": None,
    "_id": "7",
}


@pytest.mark.parametrize(
    "window, limit", [(4096, 3500), (8192, 7500), (16384, 15500), (32768, 31500)]
)
def test_a_prompt_is_cut_to_the_benchmarks_length(window, limit):
    """Those of its config/model2maxlen.json."""
    assert longbench.limit(window) == limit


def test_tasks_are_the_benchmarks():
    """Against lm-eval's own copy of the generation lengths."""
    package = Path(importlib.util.find_spec("lm_eval").submodule_search_locations[0])
    for name, task in TASKS.items():
        text = (package / f"tasks/longbench/{name}_e.yaml").read_text()
        generation = yaml.load(text, yaml.BaseLoader)["generation_kwargs"]
        assert int(generation["max_gen_toks"]) == task.max_new_tokens
    assert len(TASKS) == 13
    assert [name for name, task in TASKS.items() if task.kind == "few-shot"] == [
        "trec",
        "triviaqa",
        "samsum",
    ]


def test_prompts_are_official_to_the_byte():
    """One digest of all thirteen official templates, joined by NUL, each with {context} and {input}
    left in."""
    placeholders = {"context": "{context}", "input": "{input}"}
    templates = "\0".join(prompt(task, placeholders) for task in TASKS)
    digest = "e3b1389c3422ea9dde9bfdf74e3307de0670e20ddb34ff14a2b3bbae03a5b337"
    assert hashlib.sha256(templates.encode()).hexdigest() == digest


# ---- truncation


@pytest.mark.parametrize(
    "max_length, expected",
    [
        # 31 tokens with <s>, which counts among the first half and is not decoded
        (2, "3"),
        (5, "a23"),
        (30, "abcdefghijklmnpqrstuvwxyz 123"),
        (31, "abcdefghijklmnopqrstuvwxyz 123"),
    ],
)
def test_the_middle_goes(max_length, expected):
    text = "abcdefghijklmnopqrstuvwxyz 123"
    assert truncate_middle(byte_tokenizer("<s> $A"), text, max_length) == expected


# ---- scores


@pytest.mark.parametrize(
    "task, prediction, answers, expected",
    [
        # F1 of the words: case, punctuation, articles and white space aside
        ("qasper", "The cat,\n sat!", ["a cat sat down"], 0.8),  # 2 of 2, 2 of 3
        ("qasper", "U.S. forces", ["us"], 2 / 3),
        ("qasper", "cat cat", ["cat"], 2 / 3),  # a bag, not a set
        ("qasper", "the", ["a"], 0),  # nothing is left to compare
        ("qasper", "dog", ["cat", "a dog barks", "the dog"], 1),  # the best reference
        # only the first line of triviaqa, trec and samsum counts, after line feeds but not after
        # spaces
        ("hotpotqa", "Paris\nLondon", ["Paris"], 2 / 3),
        ("triviaqa", "\n\nParis\nLondon", ["Paris"], 1),
        ("triviaqa", " \nParis", ["Paris"], 0),
        # the numbers in the prediction, as written
        ("passage_count", "3 of 30", ["3"], 1 / 2),
        ("passage_count", "03", ["3"], 0),
        ("passage_retrieval_en", "it is 3\nor 13, or 4", ["Paragraph 13"], 1 / 3),
        # ROUGE-L
        ("gov_report", "a b c d", ["a c e"], 4 / 7),  # the subsequence a c: 2 of 4, 2 of 3
        # every sentence gives its own subsequence: 2 of 3, 2 of 2
        ("gov_report", "x y. z", ["z x"], 0.8),
        ("gov_report", "x x x y", ["x"], 2 / 3),  # distinct words: 1 of 2, 1 of 1
        ("gov_report", "A b", ["a b"], 1 / 2),  # case counts
        ("samsum", "a\nb", ["a b"], 2 / 3),  # first line
        ("gov_report", "a b", ["", "a b"], 1),
    ],
)
def test_words_numbers_and_subsequences(task, prediction, answers, expected):
    assert score(task, prediction, answers) == pytest.approx(expected, abs=1e-7)


def test_rouge_of_endless_sentences_is_0_as_in_the_benchmark():
    ours = "same " + " ".join(f"a{i}" for i in range(510))
    theirs = "same " + " ".join(f"b{i}" for i in range(510))
    assert score("gov_report", ours, [theirs]) == 0


@pytest.mark.parametrize(
    "prediction, answer, classes, expected",
    [
        ("Food", "Food", ["Food", "Date"], 1),
        ("Type: Food or Date", "Food", ["Food", "Date"], 1 / 2),
        # A name within the right one is not held against it …
        ("Other number", "Other number", ["number", "Other number"], 1),
        # … unless the name before it was just removed from the list under iteration.
        ("Other number", "Other number", ["Other", "number", "Other number"], 1 / 2),
    ],
)
def test_classification(prediction, answer, classes, expected):
    before = list(classes)
    assert score("trec", prediction, [answer], classes) == expected
    assert classes == before


@pytest.mark.parametrize(
    "prediction, answer, expected",
    [
        ("\n\nreturn x\nreturn y", "return x", 1),
        ("# a\n`b`\nc // d\nreturn x", "return x", 1),
        ("   \nreturn x", "return x", 0.18),  # a line of spaces counts: 2·1/11
        ("abc", "abd", 0.67),  # 2·2/6, to whole percent
        ("abcdefgh", "aijklmno", 0.12),  # 2·1/16 = 12.5 %, rounded to even
        ("diet", "tide", 0.5),  # not symmetric: an example of difflib's documentation
        ("# x", "", 1),  # equal, both empty
        ("c" + "ab" * 120, "ab" * 120, 0),  # difflib ignores characters frequent in a long text
    ],
)
def test_edit_similarity(prediction, answer, expected):
    for task in ("lcc", "repobench-p"):
        assert score(task, prediction, [answer]) == expected


# ---- samples


def write(file: Path, *rows) -> None:
    file.write_text(
        "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    )


def test_a_directory_and_the_benchmarks_archive_hold_longbench_and_longbench_e(
    monkeypatch, tmp_path
):
    write(tmp_path / "qasper.jsonl", {**SAMPLE, "_id": "of LongBench"})
    assert [row["_id"] for row in load("qasper", tmp_path)] == ["of LongBench"]
    numbers = {"_id": "8", "answers": [3.5, 2.0, 7]}
    write(tmp_path / "qasper_e.jsonl", {**SAMPLE, "language": "en"}, "\n", SAMPLE | numbers)
    expected = [SAMPLE, {**SAMPLE, "_id": "8", "answers": ["3.5", "2", "7"]}]
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        for file in tmp_path.glob("*.jsonl"):
            archive.write(file, f"data/{file.name}")
    files = {(longbench.HUB, "data.zip"): [tmp_path / "data.zip"]}
    monkeypatch.setattr(hub, "download", lambda name, pattern, _: files[name, pattern])
    for folder in (None, str(tmp_path)):
        assert load("qasper", folder) == expected
        with pytest.raises(InputError, match="neither trec_e.jsonl nor trec.jsonl"):
            load("trec", folder)


# ---- broken files and arguments

LINE = json.dumps(SAMPLE)


@pytest.mark.parametrize(
    "text, says",
    [
        pytest.param("\n \n", "no samples of qasper", id="only white space"),
        pytest.param(LINE + "\n" + LINE[:40], "line 2", id="torn"),
        pytest.param("[" * 100_000, "line 1", id="deep"),
        pytest.param(json.dumps(SAMPLE | {"answers": "x"}), "line 1", id="answers are a text"),
        pytest.param(json.dumps(SAMPLE | {"_id": 7}), "line 1", id="a number for a name"),
        pytest.param(LINE + "\n" + LINE, "line 2", id="the same twice"),
        pytest.param(json.dumps(SAMPLE | {"context": "\ud800"}), "line 1", id="half a pair"),
    ],
)
def test_a_broken_line_is_named(tmp_path, text, says):
    write(tmp_path / "qasper.jsonl", text)
    with pytest.raises(InputError, match=says):
        load("qasper", tmp_path)


@pytest.mark.parametrize("task", ["passage_retrieval_en", "trec"])
def test_a_sample_that_cannot_be_scored_is_named(tmp_path, task):
    """Its answer names no paragraph, or it has no classes."""
    write(tmp_path / f"{task}.jsonl", SAMPLE)
    with pytest.raises(InputError, match="line 1"):
        load(task, tmp_path)


def test_an_unknown_task_is_refused():
    with pytest.raises(InputError, match="nothing"):
        load("nothing")


# ---- averages


def rows(task: str, length: int, *scores: float) -> list[tuple]:
    return [(task, length, x) for x in scores]


def test_averages_by_hand():
    found = rows("qasper", 10, 0, 1) + rows("lcc", 3999, 1, 1, 1)
    found += rows("qasper", 7999, 0.5) + rows("lcc", 8000, 0.2, 0.4)
    table = aggregate(found)
    means = {}
    for task, cells in table["tasks"].items():
        for name, cell in cells.items():
            means[task, name] = cell["mean"], cell["n"]
    assert means == {
        ("qasper", "0-4k"): (50, 2),
        ("qasper", "4-8k"): (50, 1),
        ("lcc", "0-4k"): (100, 3),
        ("lcc", "8k+"): (pytest.approx(30), 2),
    }
    # Tasks weigh the same: 75, where the mean over the five samples is 80. Resampled, qasper is 0,
    # 50 or 100.
    assert table["buckets"] == {
        "0-4k": {"mean": 75, "low": 50, "high": 100, "n": 5, "tasks": 2},
        "4-8k": {"mean": 50, "low": 50, "high": 50, "n": 1, "tasks": 1},
        "8k+": pytest.approx({"mean": 30, "low": 20, "high": 40, "n": 2, "tasks": 1}),
    }
    averages = table["averages"]
    assert averages["Avg."]["mean"] == pytest.approx((75 + 50 + 30) / 3)
    assert averages["Avg."]["n"] == 8
    assert averages["Avg.>4k"] == pytest.approx({"mean": 40, "low": 35, "high": 45, "n": 3})
    assert json.loads(json.dumps(table)) == table
