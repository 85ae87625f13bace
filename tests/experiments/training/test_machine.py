"""Fine-tuning on the machine at hand: how many processes, sequences at a time, and what it says of them."""

import dataclasses
import json
import types
from importlib import metadata

import pytest
import torch

from core.errors import InputError
from experiments import finetune
from experiments.base_models.model import Training
from experiments.training.trainer import Trainer
from tests.models import byte_tokenizer, random_model


def facts(folder):
    return json.loads((folder / "training.json").read_text())


def test_what_it_ran_on_is_stated_and_does_not_make_another_run(finetuned, tmp_path):
    assert finetuned("--steps", 1)[0] == 0
    ran_on = facts(tmp_path / "out")["ran_on"]
    assert (ran_on["processes"], ran_on["device_batch"], ran_on["accumulated"]) == (1, 2, 2)
    assert ran_on["attention"] == "sdpa" and ran_on["loss"] == "chunked" and ran_on["flash_attn"] is None
    assert ran_on["deepspeed"] == metadata.version("deepspeed")
    (record,) = (tmp_path / "results").rglob("finetune/*.json")
    assert json.loads(record.read_text())["ran_on"] == ran_on
    status, out, _ = finetuned("--steps", 1, "--device-batch", 1)
    assert status == 0 and "done already" in out


def test_where_memory_runs_out_it_goes_on_with_fewer_sequences_at_a_time(finetuned, command, tmp_path, monkeypatch):
    """The memory is made up: after the checkpoint of step 2, too little for anything but one sequence, recomputed."""
    random_model(max_position_embeddings=32).save_pretrained(tmp_path / "base")  # without dropout
    byte_tokenizer().save_pretrained(tmp_path / "base")
    model = ["--model", tmp_path / "base", "--steps", 3]
    assert finetuned(*model, "--device-batch", 1, "--output", tmp_path / "small")[0] == 0
    real, tried = Trainer.training_step, []

    def scarce(self, model, inputs, *rest):
        tried.append((len(inputs["input_ids"]), self.args.activation_checkpointing))
        if self.state.global_step >= 2 and tried[-1] != (1, True):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return real(self, model, inputs, *rest)

    monkeypatch.setattr(Trainer, "training_step", scarce)
    monkeypatch.setattr(finetune, "_fitted", lambda settings, *_: dataclasses.replace(settings, device_batch=4))
    free = [word for word in command_without("--device-batch", command(*model)) if word != "--no-checkpointing"]
    base = dataclasses.replace(Training(), checkpointing=False)
    monkeypatch.setattr(finetune, "Training", lambda: base)
    status, _, err = finetuned(arguments=free)
    assert status == 0 and "2 sequences at a time.\n" in err and "1 sequences at a time, activations recomputed" in err
    assert list(dict.fromkeys(tried)) == [(4, False), (2, False), (1, False), (1, True)]
    losses, small = facts(tmp_path / "out")["losses"], facts(tmp_path / "small")["losses"]
    assert losses == pytest.approx(small, rel=1e-4) and len(losses) == 3


def command_without(option, words):
    """A command line without this option and its value."""
    place = words.index(option)
    return words[:place] + words[place + 2 :]


def test_on_a_host_with_gpus_the_device_batch_is_what_fits(finetuned, tmp_path, monkeypatch, command):
    """The GPU is made up; its memory is a number."""
    asked = []

    def train(run, name, settings, *_):
        asked.append(settings.device_batch)
        raise InputError("seen.")

    monkeypatch.setattr(finetune, "train", train)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    without = command_without("--device-batch", command())
    for memory in (1e3, 80e9):
        monkeypatch.setattr(
            torch.cuda, "get_device_properties", lambda _, memory=memory: types.SimpleNamespace(total_memory=memory)
        )
        for arguments in (without, [*without, "--device-batch", "2"], [*without, "--dtype", "float32"]):
            assert finetuned(arguments=arguments)[0] == 2
    assert asked == [1, 2, 1, 4, 2, 1]  # a batch of 4; in float32 the usual 1
