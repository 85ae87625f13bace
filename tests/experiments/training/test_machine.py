"""Fine-tuning on the machine at hand: how many processes, sequences at a time, and what it says of them."""

import json
import sys
import types
from importlib import metadata

import pytest
import torch

from core.errors import InputError
from experiments import finetune
from experiments.training import launch


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


def test_tokens_are_made_before_the_processes_that_would_wait_for_them(finetuned, tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(launch, "expected", lambda module: 8 if module == finetune.PROGRAM else 1)
    monkeypatch.setattr(finetune, "pack", lambda *_: order.append("pack"))

    def start(module):
        order.append("start")
        sys.exit(0)

    monkeypatch.setattr(launch, "start", start)
    assert finetuned("--batch", 16)[0] == 0
    assert order == ["pack", "start"]


def test_in_a_process_that_runs_another_program_it_trains_alone_whatever_gpus_there_are(
    finetuned, tmp_path, monkeypatch
):
    """And whatever a platform sets, which is no launcher."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr("torch.distributed.run.run", lambda *_: pytest.fail("started others"))
    status, _, err = finetuned("--steps", 1)
    assert status == 0, err
    assert facts(tmp_path / "out")["ran_on"]["processes"] == 1
