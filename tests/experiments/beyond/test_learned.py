"""Factors learned end to end on a small random model, killed and resumed for real."""

import json
import os
import random
import signal
import time

import numpy as np
import pytest
import torch

from core.extend import extend
from core.rope import BASELINE
from eval.position_loss import position_losses
from experiments.beyond import learning_loop
from experiments.beyond.learning_loop import LEAST, PATIENCE, Learner, Learning, is_flat
from experiments.kit import journal, records, texts
from experiments.kit.base_model import BaseModel
from tests import processes
from tests.models import byte_tokenizer, checkpoint, random_model

L = 64
QUICK = ("--steps", "12", "--evaluate-every", "2", "--sequences", "2")
SAME = ("factors", "attention_factor", "curve", "losses", "gradient_norms", "steps_made", "converged", "identity")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    root = tmp_path_factory.mktemp("inputs")
    (root / "data").mkdir()
    words = ("all", "happy", "families", "are", "alike", "each", "unhappy", "one", "in", "its", "own", "way")
    for file, seed in (("data/one", 0), ("data/two", 1), ("held", 2)):
        (root / f"{file}.txt").write_text(" ".join(random.Random(seed).choices(words, k=800)))
    checkpoint(root / "model", max_position_embeddings=L)
    return root


def line(inputs, out, *more):
    given = ("--model", inputs / "model", "--corpus", inputs / "data", "--texts", inputs / "held.txt", *QUICK)
    return *given, "--results", out / "results", *more


def record(out, name=f"from={BASELINE}_s=2_seed=0"):
    return json.loads((out / "results" / "model" / "beyond" / "learned" / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def whole(inputs, tmp_path_factory):
    """What an uninterrupted run leaves."""
    out = tmp_path_factory.mktemp("whole")
    child = processes.command("experiments.beyond.learned", *line(inputs, out), environment={"OMP_NUM_THREADS": "1"})
    assert processes.barrier(child) == 0
    return out


def test_the_record_says_what_was_learned(inputs, whole, call):
    found = record(whole)
    assert len(found["factors"]) == 8 and found["length"] == 2 * L
    assert [point["step"] for point in found["curve"]] == list(range(0, found["steps_made"] + 1, 2))
    assert found["curve"][-1]["tokens"] == found["steps_made"] * 2 * L
    assert found["curve"][0]["all"]["mean"] > found["curve"][-1]["all"]["mean"]
    assert {book["title"] for book in found["data_facts"]["books"]} <= {"one", "two"}
    assert str(inputs / "data") not in json.dumps(found)  # what the texts are, not where they lie
    assert len(found["losses"]) == len(found["gradient_norms"]) == found["steps_made"] == 12
    before = {file: file.read_bytes() for file in whole.rglob("*.json*")}
    status, out, _ = call("learned", *line(inputs, whole))
    assert status == 0 and "done already" in out
    assert before == {file: file.read_bytes() for file in whole.rglob("*.json*")}


def test_the_record_is_a_file_of_factors_that_reaches_the_last_held_out_loss(inputs, whole):
    found = record(whole)
    model = BaseModel(str(inputs / "model")).load()
    file = records.path(whole / "results", "model", "learned", f"from={BASELINE}_s=2_seed=0")
    extend(model, "factors", 2, file=file)
    (book,) = texts.files([inputs / "held.txt"])
    sequences = learning_loop.held_out(byte_tokenizer(), [book], 2, 2 * L)
    losses = np.array([position_losses(model, tokens) for _, tokens in sequences])
    last = found["curve"][-1]
    for part, expected in (("within", losses[:, :L]), ("beyond", losses[:, L:]), ("all", losses)):
        assert last[part]["mean"] == pytest.approx(expected.mean(), rel=1e-9)
        assert last[part]["low"] <= last[part]["mean"] <= last[part]["high"]


def test_killed_and_given_again_it_ends_in_the_same_bits(inputs, whole, tmp_path):
    lines = 0
    for _ in range(3):
        child = processes.command(
            "experiments.beyond.learned", *line(inputs, tmp_path), environment={"OMP_NUM_THREADS": "1"}
        )
        # Killed as soon as it has come some lines further, in the midst of the next.
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not os.waitpid(child, os.WNOHANG)[0]:
            kept = list((tmp_path / "runs").glob("*/learned/*.0.jsonl"))
            if kept and len(kept[0].read_bytes().splitlines()) > lines + 3:
                os.kill(child, signal.SIGKILL)
                assert processes.barrier(child) == -signal.SIGKILL
                lines = len(kept[0].read_bytes().splitlines())
                break
            time.sleep(0.001)
    (kept,) = (tmp_path / "runs").glob("*/learned/*.0.jsonl")
    assert lines > 5
    with open(kept, "ab") as handle:
        handle.write(b'["step 99", {"lo')  # torn
    child = processes.command(
        "experiments.beyond.learned", *line(inputs, tmp_path), environment={"OMP_NUM_THREADS": "1"}
    )
    assert processes.barrier(child) == 0
    assert {key: record(tmp_path)[key] for key in SAME} == {key: record(whole)[key] for key in SAME}


@pytest.mark.parametrize(
    "more, named",
    [
        (("--texts", "{data}/one.txt"), "one"),
        (("--from", "clex"), "clex"),
        (("--length", L), str(L)),
        (("--sequences", 50), "held"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_a_line(more, named, inputs, tmp_path, call):
    more = [str(value).format(data=inputs / "data") for value in more]
    status, _, error = call("learned", *line(inputs, tmp_path, *more))
    assert status == 2 and named in error
    assert len(error.strip().splitlines()[-1:]) == 1 and "Traceback" not in error
    assert not list(tmp_path.rglob("learned/*.json"))


@pytest.mark.parametrize(
    "first, last, flat",
    [
        ([], [2.0] * PATIENCE, False),  # nothing before to improve on
        ([2.0], [2.0] * PATIENCE, True),
        ([2.0], [2.0 - 0.9 * LEAST] * PATIENCE, True),
        ([2.0], [2.0] * (PATIENCE - 1) + [2.0 - 1.1 * LEAST], False),
        ([2.0], [2.0 - 1.1 * LEAST] + [3.0] * (PATIENCE - 1), False),  # the least counts, not the last
    ],
)
def test_when_the_loss_is_flat(first, last, flat):
    assert is_flat(first + last) == flat


class Repeated:
    """One sequence over and over, as packed sequences are asked for."""

    def __getitem__(self, index):
        return {"input_ids": torch.arange(3, 3 + 2 * L)}


def learner(path, settings):
    from core.huggingface.embedding import rope_geometry
    from core.rope import scale

    model = random_model(max_position_embeddings=L)
    geometry = rope_geometry(model)
    return Learner(model, geometry, scale(geometry, BASELINE, 2), settings, journal.Journal(path))


def test_once_flat_the_rate_falls_to_zero(tmp_path, monkeypatch):
    settings = Learning(steps=40, evaluate_every=2, learning_rate=1e-9)
    held = [("text", torch.arange(3, 4 + 2 * L))]
    rates, make = [], Learner._step

    def noted(self, head, data, step, rate):
        rates.append(rate)
        return make(self, head, data, step, rate)

    monkeypatch.setattr(Learner, "_step", noted)
    found = learner(tmp_path / "j", settings).learn(Repeated(), held, 2 * L)
    level = falling = 2 * PATIENCE  # the evaluation that finds it flat is the one before the rate falls
    assert found["converged"] and found["steps_made"] == level + falling
    expected = [1] * level + [(falling - step) / falling for step in range(falling)]
    assert [rate / 1e-9 for rate in rates] == pytest.approx(expected)


def test_its_loss_is_scored_once_and_never_on_what_it_learned_from(inputs, whole, tmp_path, call):
    (file,) = (whole / "results" / "model" / "beyond" / "learned").iterdir()
    given = ("loss_by_position", "--model", inputs / "model", "--method", "factors", "--results", tmp_path / "results")
    status, out, _ = call(*given, "--file", file, "--texts", inputs / "held.txt")
    assert status == 0 and "done already" not in out
    again = tmp_path / file.name
    again.write_text(json.dumps(record(whole) | {"seconds": 1.0, "environment": {}}))
    status, out, _ = call(*given, "--file", again, "--texts", inputs / "held.txt")
    assert status == 0 and "done already" in out
    status, out, err = call(*given, "--file", file, "--texts", inputs / "data" / "one.txt")
    assert (status, out) == (2, "") and "'one'" in err and err.count("\n") == 1
