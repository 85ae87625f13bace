"""Fine-tuning on the machine at hand: how many processes, sequences at a time, and what it says of them."""

import json
import types
from importlib import metadata

import torch

from core.errors import InputError
from experiments import finetune


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


def test_on_a_host_with_gpus_the_device_batch_is_what_fits(finetuned, tmp_path, monkeypatch, command):
    """The GPU is made up; its memory is a number."""
    asked = []

    def train(run, name, settings, *_):
        asked.append(settings.device_batch)
        raise InputError("seen.")

    monkeypatch.setattr(finetune, "train", train)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    base = command()
    without = [word for i, word in enumerate(base) if "--device-batch" not in base[max(i - 1, 0) : i + 1]]
    for memory in (1e3, 80e9):
        monkeypatch.setattr(
            torch.cuda, "get_device_properties", lambda _, memory=memory: types.SimpleNamespace(total_memory=memory)
        )
        for arguments in (without, [*without, "--device-batch", "2"], [*without, "--dtype", "float32"]):
            assert finetuned(arguments=arguments)[0] == 2
    assert asked == [1, 2, 1, 4, 2, 1]  # a batch of 4; in float32 the usual 1
