"""Processes that a launcher started: each joins the others before it loads a model, and waits for
them."""

import os

import pytest
import torch
from transformers import AutoModelForCausalLM

from experiments.kit import processes as joining
from experiments.kit import records
from tests import processes
from tests.experiments.written import PASSKEY
from tests.models import checkpoint

LOADED = 77  # the exit status of a process that has come to load a model


def test_no_experiment_loads_a_model_before_its_process_has_joined_the_others(
    tmp_path, monkeypatch
):
    def load(*_, **__):
        with open(tmp_path / "joined", "a", encoding="utf-8") as file:
            file.write(f"{os.environ['RANK']} {torch.distributed.is_initialized()}\n")
        os._exit(LOADED)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", load)
    checkpoint(tmp_path / "toy", max_position_embeddings=512)
    name, *options = PASSKEY.split()
    command = [f"experiments.{name}", *options, "--model", tmp_path / "toy"]
    command += ["--results", tmp_path / "results"]
    children = [processes.command(*command, environment=rank) for rank in processes.ranks()]
    statuses = [processes.wait(child) for child in children]
    assert LOADED in statuses
    joined = (tmp_path / "joined").read_text().splitlines()
    assert joined and all(line.endswith("True") for line in joined)


@pytest.fixture
def on_gpus(monkeypatch):
    """on_gpus(2, local_rank) makes torch say that there are two GPUs."""

    def make(count, local=None):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA A100")
        monkeypatch.setattr(torch.version, "cuda", "13.0")
        for name, value in ({} if local is None else processes.ranks(4)[local]).items():
            monkeypatch.setenv(name, value)

    return make


@pytest.mark.parametrize(
    ("gpus", "rank", "device"),
    [
        (0, None, "cpu"),
        (4, None, "cuda"),
        (4, 3, "cuda:3"),
        (1, 3, "cuda:0"),  # a scheduler that shows each process its own
    ],
)
def test_each_process_has_a_gpu_of_its_own(on_gpus, gpus, rank, device):
    if gpus:
        on_gpus(gpus, rank)
    assert joining.device() == device


def test_a_record_of_a_gpu_says_which_and_with_what(on_gpus, monkeypatch):
    usual = records.environment()
    on_gpus(4, 0)
    monkeypatch.setattr(records, "version", lambda name: "1.0")
    facts = records.environment()
    assert facts.keys() - usual.keys() == {"processes", "gpus", "cuda"}
    assert (facts["processes"], facts["gpus"], facts["cuda"]) == (4, 4, "13.0")
    assert facts["device"] == "NVIDIA A100"
    assert {"flash_attn", "lm_eval"} <= facts["packages"].keys()
    monkeypatch.undo()
    assert records.environment() == usual
