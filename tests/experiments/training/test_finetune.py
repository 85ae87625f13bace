"""Fine-tuning as a user meets it: what it leaves, how it resumes, what it refuses, and how it fits
a machine."""

import json
import os
import signal
import sys

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from core import clex, files, rope
from core.extend import extend
from core.huggingface.embedding import rope_geometry
from core.rope import RopeGeometry, scale
from experiments import finetune
from experiments.kit import command_line
from experiments.kit.base_model import BaseModel
from experiments.kit.records import RESULTS, ROOT
from experiments.training.corpus import Corpus
from experiments.training.packing import pack
from experiments.training.trainer import Trainer
from tests.experiments.training.conftest import facts
from tests.models import byte_tokenizer, checkpoint, random_model
from tests.processes import fork, wait


@pytest.fixture
def sure(tmp_path):
    """A base model without dropout."""
    return checkpoint(tmp_path / "toy", max_position_embeddings=32)


def test_it_is_what_a_plain_loop_computes_and_leaves_a_checkpoint_and_a_record(
    finetuned, tmp_path, sure, books
):
    """The same data, AdamW and clipping in ten lines of torch."""
    command = ["--model", sure, "--method", "dprope", "--n-hat", 6, "--seed", 5, "--steps", 4]
    status, _, err = finetuned(*command)
    assert status == 0, err
    data = pack(Corpus(str(books)), byte_tokenizer(), 64, 4, 4, 5, tmp_path / "plain")
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
    folder = tmp_path / "out"
    training = facts(folder)
    assert training["losses"] == pytest.approx(losses, rel=1e-4)
    trained, tokens = (
        AutoModelForCausalLM.from_pretrained(folder).eval(),
        data[0]["input_ids"][None],
    )
    torch.testing.assert_close(
        trained(tokens).logits, model.eval()(tokens).logits, rtol=1e-2, atol=1e-2
    )

    assert (
        training["options"] == {"n_hat": 6}
        and training["tokens"] == 64 * 4 * 4
        and training["data_facts"]["sha256"]
    )
    assert list((folder / "tensorboard").iterdir()) and not (tmp_path / "out.unfinished").exists()
    assert (
        trained.config.max_position_embeddings
        == AutoTokenizer.from_pretrained(folder).model_max_length
        == 64
    )
    expected = scale(RopeGeometry(16, 10000.0, 32), "dprope", 2, n_hat=6).inv_freq
    np.testing.assert_allclose(trained.model.rotary_emb.inv_freq.numpy(), expected, rtol=1e-6)
    (file,) = (tmp_path / "results").rglob("finetune/*.json")
    assert (
        file.relative_to(tmp_path / "results").as_posix()
        == "toy/finetune/dprope_n-hat=6_s=2_seed=5_rate=0.01.json"
    )
    record = json.loads(file.read_text())
    assert record["identity"] == training["identity"] and record["losses"] == training["losses"]
    assert record["scores"]["final_loss"] == training["losses"][-1]
    expected = {
        "processes": 1,
        "device_batch": 2,
        "accumulated": 2,
        "attention": "sdpa",
        "loss": "chunked",
    }
    assert record["ran_on"].items() >= expected.items()
    assert record["data"] == [
        [f.name, files.sha256(f)] for f in sorted(books.iterdir())
    ]  # and not where it lies

    # Again: nothing is done twice; a lost record is written again; another run is not taken for
    # this one.
    file.unlink()
    another = tmp_path / "out.unfinished" / "checkpoint-9" / "model.safetensors"
    another.parent.mkdir(parents=True)
    another.touch()
    status, out, _ = finetuned(*command, "--device-batch", 1)
    assert another.exists()
    assert (
        status == 0
        and "done already" in out
        and json.loads(file.read_text())["losses"] == training["losses"]
    )
    status, _, err = finetuned("--model", sure, "--method", "dprope", "--seed", 5, "--steps", 4)
    assert status == 2 and "options n_hat 6, not none" in err and len(err.splitlines()) == 1


def test_a_recorded_run_that_learns_its_scaling_began_with_these_draws(tmp_path):
    """Its first loss, before any weight has changed, is that of the tokens at the t and positions
    that a seed gives."""
    run = json.loads((RESULTS / "tiny" / "finetune" / "clex_s=2_seed=0.json").read_text())
    base = BaseModel("tiny")
    loaded = base.load()
    model = rope.get(run["method"]).start(loaded, rope_geometry(loaded), run["factor"]).train()
    data = pack(
        Corpus(run["data"]),
        base.tokenizer,
        run["length"],
        run["batch"],
        run["steps"],
        run["seed"],
        tmp_path,
    )
    rows = torch.stack([data[i]["input_ids"] for i in range(run["batch"])])
    with clex.drawing(model, clex.Draws(run["seed"]), range(run["batch"])), torch.no_grad():
        assert model(rows, labels=rows, use_cache=False).loss.item() == pytest.approx(
            run["losses"][0], rel=2e-6
        )


def signalled(method, step, number, command):
    """Fine-tune; the process gets this signal when `method` of the trainer is called in that
    step."""
    original = getattr(Trainer, method)

    def function(self, *arguments, **options):
        if self.state.global_step == step and getattr(self, "_micro_batch", 1):
            os.kill(os.getpid(), number)
        return original(self, *arguments, **options)

    setattr(Trainer, method, function)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's job in the background ignores it
    sys.argv = ["finetune", *command]
    command_line.run(finetune.main)


def test_stopped_or_killed_anywhere_it_ends_with_the_same_losses_and_weights(
    finetuned, command, tmp_path, monkeypatch
):
    """In a step, which it ends and keeps; while a checkpoint is written; and when only the result
    is missing."""
    steps = "--steps", 3
    assert finetuned(*steps, "--output", tmp_path / "whole")[0] == 0
    unfinished = tmp_path / "out.unfinished"
    for method, step, number, status, kept in (
        ("training_step", 0, signal.SIGTERM, 128 + signal.SIGTERM, 1),
        (
            "_save_optimizer_and_scheduler",
            2,
            signal.SIGKILL,
            -signal.SIGKILL,
            1,
        ),  # the weights are already there
        ("training_step", 1, signal.SIGINT, 130, 2),
    ):
        work = lambda: signalled(method, step, number, command(*steps))  # noqa: E731
        assert wait(fork(work)) == status
        assert [path.name for path in unfinished.glob("checkpoint-*")] == [f"checkpoint-{kept}"]

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("experiments.training.output.export", interrupted)
        status, _, err = finetuned(*steps)
        assert status == 130 and err.endswith(f"last checkpoint: {unfinished / 'checkpoint-3'}.\n")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(Trainer, "training_step", lambda *_: pytest.fail("trained on"))
    status, _, err = finetuned(*steps)
    assert status == 0, err
    assert facts(tmp_path / "out")["losses"] == facts(tmp_path / "whole")["losses"]
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "out")]
    assert weights[0] == weights[1]


def test_a_loss_that_is_not_finite_stops_before_it_reaches_the_weights(
    finetuned, tmp_path, monkeypatch
):
    original = Trainer.compute_loss

    def poisoned(self, model, inputs, *rest, **options):
        if self.state.global_step == 2 and self._micro_batch == 1:
            with torch.no_grad():
                model.get_input_embeddings().weight[inputs["input_ids"][0, 0]] = float("nan")
        return original(self, model, inputs, *rest, **options)

    monkeypatch.setattr(Trainer, "compute_loss", poisoned)
    status, _, err = finetuned()
    line = err.splitlines()[-1]
    assert (
        status == 2
        and "nan at step 3 (sequences 10 to 11 of its data)" in line
        and line.endswith("checkpoint-2.")
    )
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "out.unfinished" / "checkpoint-2")
    assert all(parameter.isfinite().all() for parameter in saved.parameters())


def test_a_gradient_that_is_not_finite_stops_too(finetuned, monkeypatch):
    monkeypatch.setattr(
        "torch.nn.utils.clip_grad_norm_", lambda *_, **__: torch.tensor(float("inf"))
    )
    status, _, err = finetuned("--steps", 1)
    assert (
        status == 2
        and "the gradient's norm is inf at step 1" in err
        and err.endswith("last checkpoint: none.\n")
    )


@pytest.mark.parametrize(
    "change, sentence",
    [
        (["--method", "clex", "--factor", "1"], "above 1"),
        (["--method", "pi", "yarn"], "one method"),
        (["--output", str(ROOT / "core")], "holds no training run"),
        (["--results", str(RESULTS)], "the model's suite trains"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(finetuned, tmp_path, change, sentence):
    status, _, err = finetuned(*change)
    assert status == 2 and sentence in err and len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.unfinished").exists()


def test_where_memory_runs_out_it_goes_on_with_fewer_sequences_at_a_time(
    finetuned, tmp_path, monkeypatch, sure
):
    """The memory is made up: after the first step, too little for anything but one sequence,
    recomputed."""
    real, sizes = Trainer.training_step, []

    def scarce(self, model, inputs, *rest):
        sizes.append((len(inputs["input_ids"]), self.args.activation_checkpointing))
        if self.state.global_step and sizes[-1] != (1, True):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return real(self, model, inputs, *rest)

    monkeypatch.setattr(Trainer, "training_step", scarce)
    status, _, err = finetuned("--model", sure, "--steps", 2, "--save-every", 1)
    assert (
        status == 0
        and "1 sequences at a time.\n" in err
        and "1 sequences at a time, activations recomputed" in err
    )
    assert list(dict.fromkeys(sizes)) == [(2, False), (1, False), (1, True)]
    assert len(facts(tmp_path / "out")["losses"]) == 2
