"""The committed base model: what its card and its scale say of it is so."""

import pytest
from transformers import AutoTokenizer

from core.huggingface.embedding import rope_geometry
from core.huggingface.rotation import skeleton
from eval import longbench
from experiments import base_models
from experiments.kit.model import resolve
from records import ROOT

DIRECTORY = ROOT / "models/tiny"


def test_the_scale_states_its_geometry():
    assert rope_geometry(skeleton(resolve("tiny").config)) == base_models.MODELS["tiny"].geometry


def test_its_tokenizer_loses_nothing_and_splits_numbers_into_digits():
    tokenizer = AutoTokenizer.from_pretrained(DIRECTORY)
    text = "Zażółć 😀 gęślą\tjaźń — 3,141 592\r\n\x00 “quoted”  two  spaces"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    digits = [tokenizer.decode([token]) for token in tokenizer("x 9876543 y").input_ids]
    assert [piece for piece in digits if piece.strip().isdigit()] == list("9876543")


@pytest.mark.parametrize("task", longbench.TASKS)
def test_its_samples_fall_into_their_buckets_and_have_a_right_answer(task):
    rows = longbench.load(task, DIRECTORY / "benchmarks/longbench_e")
    buckets = [longbench.bucket(row["length"]) for row in rows]
    assert buckets == [name for name in longbench.BUCKETS for _ in range(3)]
    for row in rows:
        answers = row["answers"]
        assert longbench.score(task, answers[0], answers, row["all_classes"]) == pytest.approx(1)
