"""Factors learned end to end on a small random model."""

import json
import random

import numpy as np
import pytest

import records
from analysis.beyond import learned
from core.errors import InputError
from core.extend import extend
from core.rope import BASELINE
from eval.perplexity import position_losses
from experiments.beyond import learning_loop
from experiments.beyond.learning_loop import LEAST, PATIENCE, is_flat
from experiments.kit import texts
from experiments.kit.model import resolve
from tests import processes
from tests.experiments.written import changed
from tests.files import read
from tests.models import byte_tokenizer, checkpoint

L = 64
QUICK = ("--steps", "12", "--evaluate-every", "2", "--sequences", "2")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    root = tmp_path_factory.mktemp("inputs")
    (root / "data").mkdir()
    for file, seed in (("data/one", 0), ("data/two", 1), ("held", 2)):
        (root / f"{file}.txt").write_text(
            " ".join(random.Random(seed).choices("abcdefghijkl", k=800))
        )
    checkpoint(root / "model", max_position_embeddings=L)
    return root


def line(inputs, out, *more):
    read = ("--corpus", inputs / "data", "--texts", inputs / "held.txt")
    usual = "--model", inputs / "model", *read, *QUICK, "--results", out / "results"
    return changed(usual, more)


def record_file(out):
    return records.path(out / "results", "model", "learned", f"from={BASELINE}_s=2_seed=0")


def run(inputs, out):
    """In a process of its own, whose id it returns."""
    return processes.command("experiments.beyond.learned", *line(inputs, out))


@pytest.fixture(scope="module")
def whole(inputs, tmp_path_factory):
    """What an uninterrupted run leaves."""
    out = tmp_path_factory.mktemp("whole")
    assert processes.wait(run(inputs, out)) == 0
    return out


def test_the_record_says_what_was_learned(inputs, whole, done):
    """And names the texts, not where they lie."""
    record = read(record_file(whole))
    curve = record["scores"]["curve"]
    assert [point["step"] for point in curve] == list(range(0, 13, 2))
    assert curve[0]["all"]["mean"] > curve[-1]["all"]["mean"]
    assert str(inputs) not in json.dumps(record["run"])
    assert "done already" in done("learned", *line(inputs, whole))


def test_the_record_is_a_file_of_factors_that_reaches_the_last_held_out_loss(inputs, whole):
    file = record_file(whole)
    model = resolve(str(inputs / "model")).load()
    extend(model, "factors", 2, file=file)
    (book,) = texts.files([inputs / "held.txt"])
    sequences = learning_loop.held_out(byte_tokenizer(), [book], 2, 2 * L)
    losses = np.array([position_losses(model, tokens) for _, tokens in sequences])
    last = read(file)["scores"]["curve"][-1]
    for span, expected in (("within", losses[:, :L]), ("beyond", losses[:, L:]), ("all", losses)):
        assert last[span]["mean"] == pytest.approx(expected.mean(), rel=1e-9)
        assert last[span]["low"] <= last[span]["mean"] <= last[span]["high"]


def test_several_processes_are_refused(inputs, tmp_path, refusal, monkeypatch):
    for name, value in (("LOCAL_RANK", "0"), ("RANK", "0"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    assert "without torchrun" in refusal("learned", *line(inputs, tmp_path))


def test_what_was_learned_otherwise_is_no_other_seed(recorder):
    recorder.learned("yarn")
    (row,) = learned.groups(recorder.results())
    assert len(row.runs) == 2
    last = [record for name, record in recorder.records.items() if name.startswith("learned/")][-1]
    last["run"]["dtype"] = "bfloat16"
    with pytest.raises(InputError, match="otherwise than by their seed"):
        learned.groups(recorder.results())


@pytest.mark.parametrize(
    "more, reason",
    [
        (("--texts", "{data}/one.txt"), "one"),
        (("--sequences", 50), "held"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_a_line(more, reason, inputs, tmp_path, refusal):
    more = [str(value).format(data=inputs / "data") for value in more]
    assert reason in refusal("learned", *line(inputs, tmp_path, *more))
    assert not list(tmp_path.rglob("learned/*.json"))


@pytest.mark.parametrize(
    "first, last, flat",
    [
        ([], [2.0] * PATIENCE, False),  # nothing before to improve on
        ([2.0], [2.0 - 0.9 * LEAST] * PATIENCE, True),
        (
            [2.0],
            [2.0 - 1.1 * LEAST] + [3.0] * (PATIENCE - 1),
            False,
        ),  # the least counts, not the last
    ],
)
def test_when_the_loss_is_flat(first, last, flat):
    assert is_flat(first + last) == flat


def test_its_loss_is_never_scored_on_what_it_learned_from(inputs, whole, tmp_path, refusal):
    command = ["--model", inputs / "model", "--file", record_file(whole)]
    command += ["--results", tmp_path / "results"]
    text = inputs / "data" / "one.txt"
    assert "'one'" in refusal("loss_by_position --method factors", *command, "--texts", text)
