"""Passkey prompts as the paper prints them, at a stated length and depth."""

import re

import pytest
from scipy import stats

from core.errors import InputError
from experiments import passkey
from tests.models import byte_tokenizer

ENCODE = byte_tokenizer().encode


@pytest.mark.parametrize("length, depth", [(500, 0), (1000, 0.25), (4096, 1)])
def test_the_prompt_is_the_papers_and_as_long_as_asked(length, depth):
    sample = passkey.sample_of(ENCODE, length, depth, seed=3)
    assert sample["key"] == f"{length}/{depth:g}/3"
    filler = (
        "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again. "
    )
    pattern = (
        r"There is an important info hidden inside a lot of irrelevant text. Find it "
        r"and memorize them. I will quiz you about the important information there.\n"
        rf"((?:{re.escape(filler)})*)\nThe pass key is (\d{{5}}). "
        r"Remember it. \2 is the pass key.\n"
        rf"((?:{re.escape(filler)})*)\nWhat is the pass key\? The pass key is"
    )
    before, key, after = re.fullmatch(pattern, sample["prompt"]).groups()
    assert key == sample["answer"]
    fillers = (len(before) + len(after)) // len(filler)
    assert len(before) // len(filler) == round(depth * fillers)
    assert sample["tokens"] == len(sample["prompt"])  # one token a byte
    assert length - len(filler) < sample["tokens"] + passkey.MAX_NEW_TOKENS <= length


def test_a_length_counts_each_depth_once():
    """Wilson's interval of SciPy, of one depth that is found and one that is not."""
    scores = {"400/0/0": 1.0, "400/0/1": 1.0, "400/1/0": 0.0, "400/1/1": 0.0}
    values = {key: {"score": score, "tokens": 390} for key, score in scores.items()}
    summary = passkey.Passkey.summary(None, values)
    ends = stats.binomtest(1, 2).proportion_ci(method="wilson")
    expected = {"mean": 0.5, "low": ends.low, "high": ends.high, "n": 4}
    expected = {name: pytest.approx(value) for name, value in expected.items()}
    assert summary["by_length"] == [{"length": 400, "tokens": 390, **expected}]


@pytest.mark.parametrize("most", [0, 700])
def test_a_length_that_does_not_grow_is_refused(most):
    with pytest.raises(InputError, match="no more tokens"):
        passkey.sample_of(lambda text: ENCODE(text)[:most], 1000, 0.5, seed=0)


def test_a_grid_can_grow_without_changing_what_is_in_it():
    first = passkey.sample_of(ENCODE, 800, 0.5, 0)
    assert passkey.sample_of(ENCODE, 800, 0.5, 0) == first
    answers = {
        passkey.sample_of(ENCODE, 800, d, s)["answer"] for d in (0, 0.5, 1) for s in range(20)
    }
    assert len(answers) > 50
    assert all(10000 <= int(answer) <= 99999 for answer in answers)


@pytest.mark.parametrize(
    "prediction, value",
    [
        (" 12345.", 1),
        (" the key 12345 or 99999", 1),
        (" 123456", 0),
        ("", 0),
        ("9 12345", 0),
    ],
)
def test_score_is_the_first_run_of_digits(prediction, value):
    assert passkey.score(prediction, "12345") == value
