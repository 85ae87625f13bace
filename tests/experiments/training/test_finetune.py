"""Fine-tuning as a user meets it: what it leaves, how it resumes, what it refuses."""

import errno
import json
import os
import signal
import sys

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from transformers.integrations import integration_utils

from core import clex, files, rope
from core.extend import extend
from core.huggingface.embedding import rope_geometry
from core.rope import RopeGeometry, scale
from experiments import finetune
from experiments.kit import command_line
from experiments.kit.base_model import BaseModel
from experiments.kit.records import RESULTS, ROOT
from experiments.training.corpus import Corpus
from experiments.training.packing import SkippedPositions, pack
from experiments.training.trainer import Trainer
from tests.models import byte_tokenizer, random_model
from tests.processes import fork, wait


def facts(folder):
    return json.loads((folder / "training.json").read_text())


def test_it_is_what_a_plain_loop_computes(finetuned, tmp_path, books):
    """The same data, AdamW and clipping in ten lines of torch, without dropout."""
    random_model(max_position_embeddings=32).save_pretrained(tmp_path / "base")
    byte_tokenizer().save_pretrained(tmp_path / "base")
    status, _, err = finetuned("--model", tmp_path / "base", "--method", "dprope", "--seed", 3)
    assert status == 0, err

    data = pack(Corpus(str(books)), byte_tokenizer(), 64, 4, 6, 3, tmp_path / "plain")
    model = extend(random_model(max_position_embeddings=32), "dprope", 2).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.999), weight_decay=0)
    losses = []
    for step in range(6):
        tokens = torch.stack([data[4 * step + i]["input_ids"] for i in range(4)])
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert facts(tmp_path / "out")["losses"] == pytest.approx(losses, rel=1e-4)
    trained = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    tokens = data[0]["input_ids"][None]
    torch.testing.assert_close(trained(tokens).logits, model.eval()(tokens).logits, rtol=1e-2, atol=1e-2)


def test_what_a_finished_run_leaves(finetuned, tmp_path, base, books):
    status, out, _ = finetuned("--method", "dprope", "--n-hat", 6, "--seed", 5)
    folder = tmp_path / "out"
    names = {file.name for file in folder.iterdir()}
    assert status == 0 and {"model.safetensors", "training.json", "loss.png", "tensorboard", "tokenizer.json"} <= names
    assert not (tmp_path / "out.unfinished").exists()
    found = facts(folder)
    assert found["method"] == "dprope" and found["options"] == {"n_hat": 6} and found["seed"] == 5
    assert found["length"] == 64 and found["tokens"] == 64 * 4 * 6 and len(found["losses"]) == 6
    assert found["model"]["sha256"].keys() == {"model.safetensors"} and found["data_facts"]["sha256"]
    assert found["losses"][-1] < found["losses"][0]
    config = json.loads((folder / "config.json").read_text())
    assert config["max_position_embeddings"] == 64
    assert AutoTokenizer.from_pretrained(folder).model_max_length == 64
    inv_freq = AutoModelForCausalLM.from_pretrained(folder).model.rotary_emb.inv_freq
    expected = scale(RopeGeometry(16, 10000.0, 32), "dprope", 2, n_hat=6).inv_freq
    np.testing.assert_allclose(inv_freq.numpy(), expected, rtol=1e-6)
    (file,) = (tmp_path / "results").rglob("finetune/*.json")
    assert file.relative_to(tmp_path / "results").as_posix() == "toy/finetune/dprope_n-hat=6_s=2_seed=5.json"
    record = json.loads(file.read_text())
    assert record["identity"] == found["identity"] and record["losses"] == found["losses"]
    assert record["scores"]["final_loss"] == found["losses"][-1]
    assert record["data"] == [[f.name, files.sha256(f)] for f in sorted(books.iterdir())]  # and not where it lies

    # Again: nothing is done twice; a lost record is written again; another run is not taken for this one.
    file.unlink()
    status, out, _ = finetuned("--method", "dprope", "--n-hat", 6, "--seed", 5)
    assert status == 0 and "done already" in out and json.loads(file.read_text())["losses"] == found["losses"]
    status, _, err = finetuned("--seed", 5, "--method", "dprope")
    assert status == 2 and 'options {"n_hat": 6}, not {}' in err and len(err.splitlines()) == 1
    assert facts(folder) == found


def test_a_recorded_run_that_learns_its_scaling_began_with_these_draws(tmp_path):
    """Its first loss, before any weight has changed, is that of the tokens at the t and positions that a seed gives."""
    run = json.loads((RESULTS / "tiny" / "finetune" / "clex_s=2_seed=0.json").read_text())
    base = BaseModel("tiny")
    loaded = base.load()
    model = rope.get(run["method"]).start(loaded, rope_geometry(loaded), run["factor"]).train()
    data = pack(Corpus(run["data"]), base.tokenizer, run["length"], run["batch"], run["steps"], run["seed"], tmp_path)
    rows = torch.stack([data[i]["input_ids"] for i in range(run["batch"])])
    with clex.drawing(model, clex.Draws(run["seed"]), range(run["batch"])), torch.no_grad():
        assert model(rows, labels=rows, use_cache=False).loss.item() == pytest.approx(run["losses"][0], rel=2e-6)


def test_what_is_learned_from_nothing_begins_the_same_for_a_seed(finetuned, command, tmp_path):
    """In another process too, whose random numbers begin elsewhere."""
    learned = next(name for name, method in rope.METHODS.items() if method.start)
    for name in ("one", "two"):
        torch.seed()
        places = ["--output", tmp_path / name, "--results", tmp_path / f"results-{name}"]
        assert finetuned("--method", learned, "--steps", 2, *places)[0] == 0
    assert facts(tmp_path / "one")["losses"] == facts(tmp_path / "two")["losses"]
    matrices = [(tmp_path / name / "clex.safetensors").read_bytes() for name in ("one", "two")]
    assert matrices[0] == matrices[1]


def killed_at(method, step, command):
    """Fine-tune until `method` of the trainer is called in that step."""
    original = getattr(Trainer, method)

    def function(self, *arguments, **options):
        if self.state.global_step == step and getattr(self, "_micro_batch", 1):
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, *arguments, **options)

    setattr(Trainer, method, function)
    sys.argv = ["finetune", *command]
    command_line.run(finetune.main)


def test_skipped_positions_are_what_a_plain_loop_computes_also_after_a_kill(finetuned, command, tmp_path, books):
    """Tokens of sequences of L' = 64 at their own positions, each token seeing all before it, without dropout."""
    random_model(max_position_embeddings=32).save_pretrained(tmp_path / "base")
    byte_tokenizer().save_pretrained(tmp_path / "base")
    given = ["--model", tmp_path / "base", "--skip-positions", "--seed", 3, "--results", tmp_path / "results"]
    assert wait(fork(lambda: killed_at("training_step", 3, command(*given)))) == -signal.SIGKILL
    status, _, err = finetuned(*given)
    assert status == 0, err

    data = pack(Corpus(str(books)), byte_tokenizer(), 64, 4, 6, 3, tmp_path / "plain")
    places = [item["position_ids"] for item in map(SkippedPositions(data, 32, 3).__getitem__, range(24))]
    gaps = [int(part[-1]) - 31 for part in places]
    assert all((part.diff() != 1).sum() == (gap > 0) for part, gap in zip(places, gaps))
    firsts = [int((part.diff() != 1).nonzero()) + 1 for part, gap in zip(places, gaps) if gap]
    assert min(gaps) < 8 and max(gaps) > 24 and max(gaps) <= 32 and min(firsts) < 4 and 12 < max(firsts) <= 16
    model = extend(random_model(max_position_embeddings=32), "pi", 2).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.999), weight_decay=0)
    unseen = torch.full((32, 32), torch.finfo(torch.float32).min).triu(1).expand(4, 1, 32, 32)
    losses = []
    for step in range(6):
        positions = torch.stack(places[4 * step : 4 * step + 4])
        tokens = torch.stack([data[4 * step + i]["input_ids"] for i in range(4)]).gather(1, positions)
        loss = model(tokens, labels=tokens, position_ids=positions, attention_mask=unseen).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    found = facts(tmp_path / "out")
    assert found["losses"] == pytest.approx(losses, rel=1e-4)
    assert (found["length"], found["skip_positions"], found["tokens"]) == (32, 64, 32 * 4 * 6)
    assert [file.name for file in (tmp_path / "results").rglob("finetune/*.json")] == ["pi_s=2_seed=3_skip.json"]
    assert finetuned(*given[:2], "--seed", 3, "--length", 32)[0] == 2  # another run


@pytest.mark.parametrize("more", [["--length", 64], ["--length", 65], ["--method", "clex"]])
def test_there_must_be_positions_to_skip(finetuned, tmp_path, more):
    status, _, err = finetuned("--skip-positions", *more)
    assert status == 2 and "leave --skip-positions out" in err and not (tmp_path / "out.unfinished").exists()


def test_killed_anywhere_it_ends_with_the_same_losses_and_weights(finetuned, command, tmp_path):
    whole = tmp_path / "whole"
    assert finetuned("--output", whole)[0] == 0
    unfinished = tmp_path / "out.unfinished"
    # In the middle of step 4, and then while the checkpoint of step 4 is being written, its weights already there.
    for method, step in (("training_step", 3), ("_save_optimizer_and_scheduler", 4)):
        assert wait(fork(lambda: killed_at(method, step, command()))) == -signal.SIGKILL
        assert [path.name for path in unfinished.glob("checkpoint-*")] == ["checkpoint-2"]
    assert list((unfinished / ".saving").rglob("model.safetensors"))
    status, _, err = finetuned()
    assert status == 0, err
    assert facts(tmp_path / "out")["losses"] == facts(whole)["losses"]
    weights = [(folder / "model.safetensors").read_bytes() for folder in (whole, tmp_path / "out")]
    assert weights[0] == weights[1]


def test_killed_after_the_last_step_it_only_writes_the_result(finetuned, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("experiments.training.run.plot_loss", interrupted)
        assert finetuned()[0] == 130
    assert not (tmp_path / "out").exists()
    state = json.loads((tmp_path / "out.unfinished" / "checkpoint-6" / "trainer_state.json").read_text())
    monkeypatch.setattr(Trainer, "training_step", lambda *_: pytest.fail("trained on"))
    assert finetuned()[0] == 0
    assert facts(tmp_path / "out")["losses"] == [entry["loss"] for entry in state["log_history"]]


def test_a_full_disk_is_said_and_the_last_checkpoint_kept(finetuned, tmp_path, monkeypatch):
    original = transformers.Trainer._save_optimizer_and_scheduler
    failures = [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("[enforce fail at inline_container.cc:664] . PytorchStreamWriter failed writing file data/0"),
    ]

    def full(self, output_dir):
        if self.state.global_step == 4:
            raise failures.pop()
        return original(self, output_dir)

    monkeypatch.setattr(transformers.Trainer, "_save_optimizer_and_scheduler", full)
    unfinished = tmp_path / "out.unfinished"
    while failures:
        status, _, err = finetuned()
        assert status == 2 and "no space left" in err
        assert [path.name for path in unfinished.glob("*checkpoint-*")] == ["checkpoint-2"]
    monkeypatch.undo()


def test_a_loss_that_is_not_finite_stops_before_it_reaches_the_weights(finetuned, tmp_path, monkeypatch, books):
    original = Trainer.compute_loss

    def poisoned(self, model, inputs, *rest, **options):
        if self.state.global_step == 2 and self._micro_batch == 1:
            with torch.no_grad():
                model.get_input_embeddings().weight[inputs["input_ids"][0, 0]] = float("nan")
        return original(self, model, inputs, *rest, **options)

    monkeypatch.setattr(Trainer, "compute_loss", poisoned)
    status, _, err = finetuned()
    said = err.splitlines()[-1]
    assert status == 2 and "the loss is nan at step 3, in its batch 2" in said and "checkpoint-2, is kept" in said
    data = pack(Corpus(str(books)), byte_tokenizer(), 64, 4, 6, 0, tmp_path / "runs" / "data")
    assert all(data.describe(index) in said for index in (10, 11))
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "out.unfinished" / "checkpoint-2")
    assert all(parameter.isfinite().all() for parameter in saved.parameters())


def test_a_gradient_that_is_not_finite_stops_too(finetuned, monkeypatch):
    monkeypatch.setattr("torch.nn.utils.clip_grad_norm_", lambda *_, **__: torch.tensor(float("inf")))
    status, _, err = finetuned()
    assert status == 2 and "the gradient's norm is inf at step 1; no checkpoint had been written" in err


@pytest.mark.parametrize(
    "change, said",
    [
        (["--length", "100000"], "a batch needs 4"),
        (["--batch", "3"], "cannot be divided among 1 processes with 2 each"),
        (["--method", "clex", "--factor", "1"], "above 1"),
        (["--corpus", "/nowhere"], "no .txt or .parquet file in /nowhere"),
        (["--output", str(ROOT / "core")], "holds no training run"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(finetuned, tmp_path, change, said):
    status, _, err = finetuned(*change)
    assert status == 2 and said in err and len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.unfinished").exists()


def test_losses_go_where_they_are_asked_to(finetuned, tmp_path, monkeypatch):
    """To one of transformers' integrations; one that is not installed is refused."""
    told = []

    class Tracker(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            told.append(logs.get("loss"))

    status, _, err = finetuned("--report-to", "wandb")
    assert status == 2 and "wandb" in err and not (tmp_path / "out").exists()
    monkeypatch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "wandb", Tracker)
    monkeypatch.setattr(finetune, "get_available_reporting_integrations", lambda: ["wandb"])
    assert finetuned("--report-to", "wandb", "--steps", 2)[0] == 0
    losses = facts(tmp_path / "out")["losses"]
    assert told[:2] == pytest.approx(losses, abs=1e-4)
