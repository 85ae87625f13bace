"""Pre-training starts a process for each part of a batch, as far as there are GPUs or cores for them."""

import pytest
import torch

from experiments.training import launch
from tools.tiny import pretrain


@pytest.mark.parametrize("gpus, cores, processes", [(1, 64, 1), (2, 64, 2), (8, 64, 2), (0, 64, 2), (0, 1, 1)])
def test_how_many_processes(call, tmp_path, monkeypatch, gpus, cores, processes):
    asked = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr(launch, "start", lambda *wanted: asked.append(wanted))
    monkeypatch.setattr(pretrain, "_train", lambda *_: None)
    assert (
        call("tools.tiny.pretrain", "--model", "smoke", "--output", tmp_path / "out", "--work", tmp_path / "work")[0]
        == 0
    )
    assert asked == [(pretrain.PROGRAM, processes)]
    call(
        "tools.tiny.pretrain", "--model", "smoke", "--output", tmp_path / "out", "--work", tmp_path / "work", "--export"
    )
    assert len(asked) == 1  # an export is one process's
