"""Two processes under DeepSpeed ZeRO-3 train as one does, in both dtypes, and go on after a
kill."""

import functools
import os
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from accelerate import PartialState
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, TrainingArguments

from core import clex, rope
from core.rope import RopeGeometry
from experiments import finetune
from experiments.finetune import FineTune
from experiments.kit import command_line
from experiments.training import trainer
from experiments.training.trainer import Trainer
from tests.experiments.training.conftest import facts
from tests.models import checkpoint
from tests.processes import fork, ranks, wait

LEARNED = next(name for name, method in rope.METHODS.items() if method.start)


@pytest.fixture(scope="module", autouse=True)
def imported_once():
    """In the process that all others are copies of."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DS_ACCELERATOR", "cpu")
        import deepspeed.runtime.zero.muon.muon_optimizer  # noqa: F401

        yield


@pytest.fixture
def usual(command, tmp_path, monkeypatch):
    """Without dropout, as two processes draw other masks."""
    checkpoint(
        tmp_path / "base",
        max_position_embeddings=2048,
        num_hidden_layers=1,
        tie_word_embeddings=True,
    )

    monkeypatch.setattr(FineTune, "default", replace(FineTune.default, save_every=1))

    def arguments(name, *more):
        folders = ["--output", tmp_path / name, "--results", tmp_path / f"results-of-{name}"]
        sizes = ["--length", 64, "--factor", 4, "--steps", 2]
        return command("--model", tmp_path / "base", *sizes, *folders, *more)

    return arguments


def join_on_cpu():
    """Unless it is told the backend, accelerate joins processes for DeepSpeed on accelerators
    only."""
    from deepspeed.ops import __compatible_ops__

    __compatible_ops__["deepspeed_shm_comm"] = False  # it would compile for minutes
    os.environ["ACCELERATE_USE_DEEPSPEED"] = "true"
    # of the single process that this one was
    AcceleratorState._reset_state(reset_partial_state=True)
    PartialState(backend="gloo")
    configured = {"use_configured_state": True}
    trainer.TrainingArguments = functools.partial(TrainingArguments, accelerator_config=configured)


def held(run):
    """What a trainer holds in memory."""
    weight = run.model.model.layers[0].mlp.up_proj.weight
    rotary = run.model.model.rotary_emb
    matrices = [rotary.up, rotary.down] if clex.is_installed(run.model) else []
    return {
        "stage": run.model_wrapped.zero_optimization_stage(),
        "gradients": run.model_wrapped.optimizer.grad_partitions_flat_buffer.dtype,
        "weights": weight.dtype,
        "matrices": [matrix.dtype for matrix in matrices],
        "inv_freq": rotary.inv_freq if not matrices else None,
    }


def one_of_two(rank, seen, arguments, killed_at):
    """What torchrun starts; what it held at the end goes to the file `seen`."""
    os.environ |= rank
    whole_model = Trainer.whole_model
    step = Trainer.training_step

    def look(self):
        if rank["RANK"] == "0":
            torch.save(held(self), seen)
        return whole_model(self)

    def killed(self, *rest):
        if self._micro_batches == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, *rest)

    Trainer.whole_model = look
    Trainer.training_step = killed
    join_on_cpu()
    sys.argv = ["finetune", *arguments]
    command_line.run(finetune.main)


def on_two(seen, arguments, killed_at=None):
    """Run in two processes, which are killed after so many micro-batches where a number is given;
    their exit statuses."""
    children = [fork(lambda: one_of_two(rank, seen, arguments, killed_at)) for rank in ranks()]
    return [wait(child) for child in children]


def test_in_bfloat16_they_keep_the_frequencies(usual, tmp_path):
    """In the precision that would ruin inv_freq."""
    arguments = usual("two", "--method", rope.BASELINE, "--dtype", "bfloat16", "--steps", 1)
    assert on_two(tmp_path / "seen.pt", arguments) == [0, 0]
    seen = torch.load(tmp_path / "seen.pt")
    assert seen["stage"] == 3
    assert seen["weights"] == torch.bfloat16
    assert facts(tmp_path / "two")["run"]["weights"] == "bfloat16"
    assert seen["gradients"] == torch.float32
    expected = rope.scale(RopeGeometry(16, 10000.0, 2048), rope.BASELINE, 4).inv_freq
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "two")
    for inv_freq in (seen["inv_freq"], exported.model.rotary_emb.inv_freq):
        assert inv_freq.dtype == torch.float32
        np.testing.assert_allclose(inv_freq, expected, rtol=1e-6)


def test_what_is_learned_trains_in_bfloat16_and_is_kept_in_float32(usual, tmp_path):
    arguments = usual("two", "--method", LEARNED, "--dtype", "bfloat16", "--steps", 1)
    assert on_two(tmp_path / "seen.pt", arguments) == [0, 0]
    assert torch.load(tmp_path / "seen.pt")["matrices"] == [torch.bfloat16] * 2
    matrices = load_file(tmp_path / "two/clex.safetensors")
    assert all(matrix.dtype == torch.float32 and matrix.any() for matrix in matrices.values())


def test_from_deepspeeds_checkpoint_they_go_on_to_what_one_process_trains_with_the_same_draws(
    finetuned, usual, tmp_path
):
    """Float32 leaves room for the order of sums alone. One process takes 4 sequences at a time, two
    take 1 each, and every sequence has its own t."""
    assert finetuned(arguments=usual("one", "--method", LEARNED, "--device-batch", 4))[0] == 0
    arguments = usual("two", "--method", LEARNED, "--device-batch", 1, "--checkpointing")
    assert on_two(tmp_path / "seen.pt", arguments, killed_at=3) == [-signal.SIGKILL] * 2
    assert (tmp_path / "two.unfinished/checkpoint-1").is_dir()
    assert on_two(tmp_path / "seen.pt", arguments) == [0, 0]
    expected = facts(tmp_path / "one")["losses"]
    assert facts(tmp_path / "two")["losses"] == pytest.approx(expected, rel=2e-5)
