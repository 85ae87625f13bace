"""The benches: ours and plain code agree; GPU parts run at toy size and say what no machine changes."""

import csv
import math
import signal
import socket

import pytest

from tests import processes
from tools.bench import __main__ as bench
from tools.bench.gpu import evaluation, training, zero3
from tools.bench.gpu.kit import COLUMNS, Bench


@pytest.fixture
def ran(tmp_path):
    """ran(part, …) -> {(what, engine): [values]} of a part at toy size."""

    def run(part, *arguments):
        file = tmp_path / "rows.csv"
        part(Bench(toy=True, output=file), *arguments)
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        assert all(tuple(row) == COLUMNS and row["device"] and "torch=" in row["versions"] for row in rows)
        values = {}
        for row in rows:
            values.setdefault((row["what"], row["engine"]), []).append(row["value"])
        return values

    return run


@pytest.mark.parametrize("name", ["selection", "training"])
def test_ours_and_plain_code_agree(name, monkeypatch):
    length = 64
    monkeypatch.setitem(bench.SMALL, "vocab_size", 300)
    monkeypatch.setattr(bench, "STEPS", 3)
    ours, plain = (bench.run(name, way, length)["result"] for way in ("ours", "plain"))
    if name == "training":
        assert ours == pytest.approx(plain, rel=1e-5) and len(ours) > 2
    else:
        assert ours == plain and sum(ours[0]) == length


@pytest.mark.parametrize(
    ("part", "engines"),
    [
        (training.steps, {"recomputed", "kept"}),
        (evaluation.passkeys, {"each read once, no answer", "prefixes shared", "whole, in groups of one length"}),
        (evaluation.attention, {"transformers", "ours"}),
    ],
)
def test_what_was_made_faster_is_measured_beside_what_it_replaced(ran, part, engines):
    values = ran(part)
    assert {engine for _, engine in values} == engines and len({what for what, _ in values}) <= 2
    assert all(float(several[0]) > 0 for several in values.values())


def test_serve(ran):
    values = ran(evaluation.serve)
    assert len(values) == 4 and all(float(value) > 0 for several in values.values() for value in several)


def test_memory(ran):
    values = ran(evaluation.memory)
    assert values["generation, answers of 7 equal after halving", "eval.generation"] == ["7"]
    assert float(values["log-likelihoods, largest difference after halving", "eval.log_likelihood"][0]) < 1e-4


def test_zero3_goes_on_after_a_kill_to_the_same_losses(ran, monkeypatch):
    """As torchrun starts it, but forked."""
    import deepspeed  # noqa: F401 (once, rather than in every fork)

    statuses = []

    def spawn(options):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "DS_ACCELERATOR": "cpu"}
        place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        statuses.append(processes.wait(processes.command("tools.bench.gpu.zero3", *options, environment=place)))
        return f"status {statuses[-1]}"

    monkeypatch.setattr(zero3, "spawn", spawn)
    values = ran(zero3.kill_and_resume, (zero3.LEARNED,))
    assert statuses == [0, -signal.SIGKILL, 0]
    name = f"{zero3.LEARNED}, ZeRO-3 on gloo"
    assert values[f"{name}, largest difference of a loss after kill and resume", "trainer"] == ["0"]
    first = float(values[f"{name}, first loss", "trainer"][0])
    assert first == pytest.approx(math.log(256), rel=0.02)  # random weights know nothing
