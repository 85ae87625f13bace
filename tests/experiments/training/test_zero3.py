"""Two processes under DeepSpeed ZeRO-3 train as one does, in both dtypes, and go on after a kill."""

import contextlib
import json
import os
import runpy
import signal
import socket
import sys

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from core import clex, rope
from core.rope import RopeGeometry
from tests.models import byte_tokenizer, random_model
from tests.processes import fork, wait

LEARNED = next(name for name, method in rope.METHODS.items() if method.start)


@pytest.fixture(scope="module", autouse=True)
def imported_once():
    """In the process that all others are copies of."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DS_ACCELERATOR", "cpu")
        import deepspeed.runtime.zero.muon.muon_optimizer  # noqa: F401 (and with it torch's compiler)

        yield


@pytest.fixture
def usual(command, tmp_path):
    """Without dropout, as two processes draw other masks."""
    random_model(max_position_embeddings=2048, tie_word_embeddings=True).save_pretrained(tmp_path / "base")
    byte_tokenizer().save_pretrained(tmp_path / "base")

    def arguments(name, *more):
        places = ["--output", tmp_path / name, "--results", tmp_path / f"results-of-{name}"]
        return command("--model", tmp_path / "base", "--length", 64, "--factor", 4, "--steps", 4, *places, *more)

    return arguments


def one_of_two(rank, port, arguments):
    """What torchrun starts."""
    os.environ |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    AcceleratorState._reset_state(reset_partial_state=True)  # of the single process that this one was
    sys.argv = ["zero3_worker", *arguments]
    runpy.run_module("tests.experiments.training.zero3_worker", run_name="__main__")


def on_two(seen, arguments, killed_at=0):
    """Run in two processes; their exit statuses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    arguments = [str(seen), str(killed_at), *arguments]
    return [wait(child) for child in [fork(lambda: one_of_two(rank, port, arguments)) for rank in "01"]]


def facts(folder):
    return json.loads((folder / "training.json").read_text())


def test_in_bfloat16_they_train_alike_and_keep_the_frequencies(finetuned, usual, tmp_path):
    """In the precision that would ruin inv_freq."""
    assert finetuned(arguments=usual("one", "--method", rope.BASELINE))[0] == 0
    more = ["--dtype", "bfloat16", "--checkpointing"]
    assert on_two(tmp_path / "seen.pt", usual("two", "--method", rope.BASELINE, *more)) == [0, 0]
    seen = torch.load(tmp_path / "seen.pt")
    assert seen["stage"] == 3 and seen["parameter_dtype"] == torch.bfloat16 and seen["elements_here"] == 0
    assert seen["gradients"] == torch.float32
    # 1e-2 is what bfloat16 weights alone cost a loss of 5 nats; a wrong step or batch costs far more.
    assert facts(tmp_path / "two")["losses"] == pytest.approx(facts(tmp_path / "one")["losses"], rel=1e-2)
    ran_on = facts(tmp_path / "two")["ran_on"]
    assert (ran_on["processes"], ran_on["device_batch"], ran_on["accumulated"]) == (2, 2, 1) and ran_on["deepspeed"]

    scaling = rope.scale(RopeGeometry(16, 10000.0, 2048), rope.BASELINE, 4)
    assert seen["inv_freq"].dtype == torch.float32
    angles = 8191 * scaling.inv_freq
    angles = np.concatenate([angles, angles])
    for found, expected in ((seen["cos"], np.cos(angles)), (seen["sin"], np.sin(angles))):
        np.testing.assert_allclose(found[0, 0], scaling.attention_factor * expected, atol=2e-3)
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "two")
    np.testing.assert_allclose(exported.model.rotary_emb.inv_freq, scaling.inv_freq, rtol=1e-6)


def test_what_is_learned_trains_in_bfloat16_and_is_kept_in_float32(finetuned, usual, tmp_path):
    assert finetuned(arguments=usual("one", "--method", LEARNED))[0] == 0
    more = ["--method", LEARNED, "--dtype", "bfloat16", "--checkpointing"]
    assert on_two(tmp_path / "seen.pt", usual("two", *more)) == [0, 0]
    seen = torch.load(tmp_path / "seen.pt")
    assert seen["matrices"] == {torch.bfloat16} and seen["elements_here"] == 0
    assert facts(tmp_path / "two")["losses"] == pytest.approx(facts(tmp_path / "one")["losses"], rel=1e-2)
    (one, two) = (load_file(tmp_path / name / "clex.safetensors") for name in ("one", "two"))
    for name, matrix in two.items():
        assert matrix.dtype == torch.float32 and matrix.any()
        torch.testing.assert_close(matrix, one[name], rtol=0.05, atol=0.02)


def test_killed_they_go_on_to_what_one_process_trains_with_the_same_draws(finetuned, usual, tmp_path, monkeypatch):
    """Float32 leaves room for the order of sums alone. One process takes 4 sequences at a time, two take 1 each, and
    every sequence has its own t."""
    assert finetuned(arguments=usual("one", "--method", LEARNED, "--device-batch", 4))[0] == 0
    arguments = usual("two", "--method", LEARNED, "--device-batch", 1, "--checkpointing")
    assert on_two(tmp_path / "seen.pt", arguments, killed_at=4) == [-signal.SIGKILL] * 2
    assert [path.name for path in (tmp_path / "two.unfinished").glob("checkpoint-*")] == ["checkpoint-2"]
    assert on_two(tmp_path / "seen.pt", arguments) == [0, 0]
    losses = facts(tmp_path / "one")["losses"]
    assert facts(tmp_path / "two")["losses"] == pytest.approx(losses, rel=2e-5)
    monkeypatch.setattr(clex, "drawing", lambda *_: contextlib.nullcontext())  # as if a batch had one t
    assert finetuned(arguments=usual("other", "--method", LEARNED, "--device-batch", 4))[0] == 0
    assert facts(tmp_path / "other")["losses"][0] != pytest.approx(losses[0], rel=2e-4)
