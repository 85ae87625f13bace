"""Passkey prompts as the paper prints them, at a stated length and depth."""

import re

import pytest

from eval import passkey
from tests.models import byte_tokenizer

TOKENIZER = byte_tokenizer()


@pytest.mark.parametrize("length", [500, 1000, 4096])
@pytest.mark.parametrize("depth", [0, 0.25, 0.5, 1])
def test_prompt_is_the_papers_and_as_long_as_asked(length, depth):
    made = passkey.sample(TOKENIZER.encode, length, depth, seed=3)
    assert made.key == f"{length}/{depth:g}/3"
    filler = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again. "
    pattern = (
        r"There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. I will quiz "
        rf"you about the important information there.\n((?:{re.escape(filler)})*)\nThe pass key is (\d{{5}}). "
        rf"Remember it. \2 is the pass key.\n((?:{re.escape(filler)})*)\nWhat is the pass key\? The pass key is"
    )
    before, key, after = re.fullmatch(pattern, made.prompt).groups()
    assert key == made.answer
    fillers = (len(before) + len(after)) // len(filler)
    assert len(before) // len(filler) == round(depth * fillers)
    assert made.tokens == len(made.prompt)  # one token a byte
    assert length - len(filler) < made.tokens + passkey.MAX_NEW_TOKENS <= length


def test_a_grid_can_grow_without_changing_what_is_in_it():
    first = passkey.sample(TOKENIZER.encode, 800, 0.5, 0)
    assert passkey.sample(TOKENIZER.encode, 800, 0.5, 0) == first
    answers = {passkey.sample(TOKENIZER.encode, 800, d, s).answer for d in (0, 0.5, 1) for s in range(20)}
    assert len(answers) > 50 and all(10000 <= int(a) <= 99999 for a in answers)


def test_prompts_of_one_depth_begin_alike_up_to_the_key():
    one, two = (passkey.sample(TOKENIZER.encode, 2000, 0.5, seed).prompt for seed in (0, 1))
    common = next(i for i, (a, b) in enumerate(zip(one, two)) if a != b)
    assert common > 900


@pytest.mark.parametrize(
    ("prediction", "value"),
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
