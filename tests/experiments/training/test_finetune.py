"""Fine-tuning as a user meets it: what it leaves, how it resumes, what it refuses, and how it fits
a machine."""

import os
import signal
import sys

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import records
from core import clex, rope
from core.extend import extend
from core.huggingface.embedding import rope_geometry
from experiments import finetune
from experiments.kit import command_line
from experiments.kit.model import resolve
from experiments.training import state
from experiments.training.corpus import Wanted, pack
from experiments.training.trainer import Trainer
from records import RESULTS, ROOT
from tests.experiments.training.conftest import facts
from tests.files import read
from tests.models import byte_tokenizer, checkpoint, random_model
from tests.processes import fork, wait


@pytest.fixture
def sure(tmp_path):
    """A base model without dropout."""
    return checkpoint(tmp_path / "toy", max_position_embeddings=32)


@pytest.fixture
def stopped(finetuned):
    """stopped("--steps", 1, …) -> what is said on stderr, with exit status 2."""

    def run(*more):
        status, _, err = finetuned(*more)
        assert status == 2
        return err

    return run


def test_it_is_what_a_plain_loop_computes(finetuned, tmp_path, monkeypatch, sure, books):
    """The same data, AdamW and clipping in ten lines of torch, and the checkpoint is that model."""
    # This suffices without --checkpointing.
    monkeypatch.setattr("transformers.LlamaForCausalLM.supports_gradient_checkpointing", False)
    status, _, err = finetuned(
        "--model", sure, "--method", "dprope", "--n-hat", 6, "--seed", 5, "--steps", 4
    )
    assert status == 0, err
    data = pack(Wanted(str(books), 64, 4, 4, 5), byte_tokenizer(), tmp_path / "plain")
    model = extend(random_model(max_position_embeddings=32), "dprope", 2, n_hat=6).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.999), weight_decay=0)
    losses = []
    for step in range(4):
        tokens = torch.stack([data[4 * step + i]["input_ids"] for i in range(4)])
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert facts(tmp_path / "out")["losses"] == pytest.approx(losses, rel=1e-4)
    trained = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    torch.testing.assert_close(
        trained(tokens).logits, model.eval()(tokens).logits, rtol=1e-2, atol=1e-2
    )


def test_it_leaves_a_checkpoint_and_a_record_and_nothing_is_done_twice(
    finetuned, stopped, tmp_path, sure, monkeypatch
):
    command = ["--model", sure, "--method", "dprope", "--n-hat", 6, "--seed", 5, "--steps", 2]
    assert finetuned(*command)[0] == 0
    folder = tmp_path / "out"
    training = facts(folder)
    assert AutoTokenizer.from_pretrained(folder).model_max_length == 64
    assert not (tmp_path / "out.unfinished").exists()
    file = tmp_path / "results/toy/finetune/dprope_n-hat=6_s=2_seed=5.json"
    record = read(file)
    assert record["identity"] == training["identity"]
    assert record["scores"]["losses"] == training["losses"]
    assert record["scores"]["tokens"] == 2 * 4 * 64
    ran_on = {"device_batch": 2, "accumulated": 2, "attention": "sdpa", "loss": "chunked"}
    assert record["environment"]["ran_on"].items() >= ran_on.items()

    # Again: a lost record is written again, and another run is not taken for this one.
    file.unlink()
    status, out, _ = finetuned(*command, "--device-batch", 1)
    assert status == 0
    assert "done already" in out
    assert read(file)["scores"]["losses"] == training["losses"]
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(records, "environment", lambda processes=1: {"device": "another"})
        file.unlink()
        finetuned(*command)
    assert read(file)["environment"]["device"] == training["environment"]["device"]
    # With --replace it trains again.
    before = (folder / "model.safetensors").stat().st_mtime_ns
    status, out, _ = finetuned(*command, "--replace")
    assert status == 0 and "done already" not in out
    assert (folder / "model.safetensors").stat().st_mtime_ns > before
    assert facts(folder)["losses"] == training["losses"]
    assert not (tmp_path / "out.unfinished").exists()
    other = ["--model", sure, "--method", "dprope", "--seed", 5, "--steps", 2]
    assert "options n_hat 6, not none" in stopped(*other)


def test_a_recorded_run_that_learns_its_scaling_began_with_these_draws(tmp_path):
    """Its first loss, before any weight has changed, is that of the tokens at the t and positions
    that a seed gives."""
    file = RESULTS / "tiny/finetune/clex_s=2_seed=0.json"
    record = read(file)
    run = record["run"]
    batch = run["batch"]
    base = resolve("tiny")
    loaded = base.load()
    model = rope.get(run["method"]).start(loaded, rope_geometry(loaded), run["factor"]).train()
    wanted = Wanted(run["data"], run["length"], batch, run["steps"], run["seed"])
    data = pack(wanted, base.tokenizer, tmp_path)
    rows = torch.stack([data[i]["input_ids"] for i in range(batch)])
    with clex.drawing(model, clex.Draws(run["seed"]), range(batch)), torch.no_grad():
        loss = model(rows, labels=rows, use_cache=False).loss
    assert loss.item() == pytest.approx(record["scores"]["losses"][0], rel=2e-6)


def signalled(method, micro_batches, number, command):
    """Fine-tune; the process gets this signal when `method` of the trainer is called after so many
    micro-batches, of which a step has two."""
    original = getattr(Trainer, method)

    def function(self, *arguments, **options):
        if self._micro_batches == micro_batches:
            os.kill(os.getpid(), number)
        return original(self, *arguments, **options)

    setattr(Trainer, method, function)
    # a shell's job in the background ignores it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["finetune", *command]
    command_line.run(finetune.main)


def test_stopped_or_killed_anywhere_it_ends_with_the_same_losses_and_weights(
    finetuned, command, tmp_path, monkeypatch
):
    """In a step, which it ends and keeps; while a checkpoint is written; and when only the result
    is missing."""
    three = command("--steps", 3)
    assert finetuned("--steps", 3, "--output", tmp_path / "whole")[0] == 0
    unfinished = tmp_path / "out.unfinished"

    def stop(method, micro_batches, number):
        status = wait(fork(lambda: signalled(method, micro_batches, number, three)))
        return status, state.last(unfinished).name

    by_slurm = 128 + signal.SIGUSR1
    assert stop("training_step", 1, signal.SIGUSR1) == (by_slurm, "checkpoint-1")
    # the weights are already there
    saving = "_save_optimizer_and_scheduler"
    assert stop(saving, 4, signal.SIGKILL) == (-signal.SIGKILL, "checkpoint-1")
    assert stop("training_step", 3, signal.SIGINT) == (130, "checkpoint-2")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("experiments.training.state.export", interrupted)
        status, _, err = finetuned(arguments=three)
        assert status == 130
        assert err.endswith(f"last checkpoint: {unfinished / 'checkpoint-3'}.\n")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(Trainer, "training_step", lambda *_: pytest.fail("trained on"))
    status, _, err = finetuned(arguments=three)
    assert status == 0, err
    assert facts(tmp_path / "out")["losses"] == facts(tmp_path / "whole")["losses"]
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "out")]
    assert weights[0] == weights[1]


def test_a_checkpoint_stays_until_the_one_that_replaces_it_is_there(finetuned, command, tmp_path):
    """Of another run, too; and the same command goes on with what was stopped."""
    assert finetuned("--steps", 1)[0] == 0
    anew = command("--steps", 3, "--replace")
    terminated = wait(fork(lambda: signalled("training_step", 3, signal.SIGTERM, anew)))
    assert terminated == 128 + signal.SIGTERM
    assert len(facts(tmp_path / "out")["losses"]) == 1
    assert (tmp_path / "out.unfinished/checkpoint-2").is_dir()
    stopped = wait(fork(lambda: signalled("training_step", 4, signal.SIGTERM, anew)))
    assert stopped == 0  # a single step was left, of two micro-batches
    assert len(facts(tmp_path / "out")["losses"]) == 3
    assert not (tmp_path / "out.unfinished").exists()
    file = tmp_path / "results/toy/finetune/pi_s=2_seed=0.json"
    assert read(file)["identity"] == facts(tmp_path / "out")["identity"]
    # What was stopped under other settings is begun anew, and what cannot be read.
    other = command("--steps", 2, "--replace", "--learning-rate", "0.02")
    assert wait(fork(lambda: signalled("training_step", 1, signal.SIGTERM, other))) == 143
    assert finetuned("--steps", 2, "--replace")[0] == 0
    (tmp_path / "out.unfinished").mkdir()
    (tmp_path / "out.unfinished/replaces").write_bytes(b"\xff")
    assert finetuned("--steps", 2, "--replace")[0] == 0
    assert len(facts(tmp_path / "out")["losses"]) == 2
    assert not (tmp_path / "out.unfinished").exists()


def test_a_loss_that_is_not_finite_stops_before_it_reaches_the_weights(
    stopped, tmp_path, monkeypatch
):
    original = Trainer.compute_loss

    def poisoned(self, model, inputs, *rest, **options):
        if self._micro_batches == 5:
            with torch.no_grad():
                model.get_input_embeddings().weight.fill_(float("nan"))
        return original(self, model, inputs, *rest, **options)

    monkeypatch.setattr(Trainer, "compute_loss", poisoned)
    err = stopped()
    assert "nan at step 3 (sequences 10 to 11 of its data)" in err
    assert err.endswith("checkpoint-2.\n")
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "out.unfinished/checkpoint-2")
    assert all(parameter.isfinite().all() for parameter in saved.parameters())


def test_a_gradient_that_is_not_finite_stops_too(stopped, monkeypatch):
    infinite = torch.tensor(float("inf"))
    monkeypatch.setattr("torch.nn.utils.clip_grad_norm_", lambda *_, **__: infinite)
    err = stopped("--steps", 1)
    assert "the gradient's norm is inf at step 1" in err
    assert err.endswith("last checkpoint: none.\n")


def test_a_checkpoint_for_which_the_disk_has_no_room_leaves_nothing(stopped, tmp_path, monkeypatch):
    def full(*_, **__):
        raise RuntimeError("[enforce fail at inline_container.cc] . unexpected pos 704 vs 598")

    monkeypatch.setattr("torch.save", full)  # the weights are written before
    assert "no space left on the disk" in stopped("--steps", 1)
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(
    "change, sentence",
    [
        (["--method", "clex", "--factor", "1"], "above 1"),
        (["--method", "pi", "yarn"], "one method"),
        (["--output", ROOT / "core"], "holds no training run"),
        (["--results", RESULTS], "'toy' is none of them"),
        (["--checkpointing"], "--no-checkpointing"),  # of a class that recomputes nothing
        (["--corpus", ""], "--corpus"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    stopped, tmp_path, monkeypatch, change, sentence
):
    monkeypatch.setattr("transformers.LlamaForCausalLM.supports_gradient_checkpointing", False)
    err = stopped(*change)
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.glob("out*"))
