"""A process for each GPU: when there is one, how they end together, and how one of them alone says
why."""

import datetime
import os
import signal
import sys
import types

import pytest
import torch

from core.errors import InputError
from experiments.base_models.model import Training
from experiments.kit import command_line, processes
from experiments.training import run, trainer
from tests.processes import fork, ranks, wait

MODULE = "tests.experiments.training.launched"


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "environment, rank, expected",
    [
        ({}, (0, 1), 2),
        ({"RANK": "1", "WORLD_SIZE": "4"}, (0, 1), 2),  # of machines, not of processes
        ({"RANK": "1", "LOCAL_RANK": "0", "WORLD_SIZE": "4"}, (1, 4), 4),
        ({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}, (0, 1), 1),
    ],
)
def test_the_rank_is_a_launchers_and_how_many_will_train(environment, rank, expected, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert processes.rank() == rank
    assert processes.expected() == expected


@pytest.mark.parametrize(
    "batch, at_a_time, gpus, number", [(64, 1, 5, 4), (2, 1, 8, 2), (6, 1, 4, 3), (6, 2, 3, 3)]
)
def test_as_many_gpus_train_as_share_a_batch(batch, at_a_time, gpus, number, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    training = Training(batch=batch, device_batch=at_a_time)
    assert run._processes(training) == number
    for name, value in ranks(7)[0].items():  # whatever a launcher started
        monkeypatch.setenv(name, value)
    assert run._processes(training) == 7


@pytest.mark.parametrize(
    "gpus, local, device",
    [
        (0, None, "cpu"),
        (4, None, "cuda"),
        (4, 3, "cuda:3"),
        (1, 3, "cuda:0"),  # a scheduler that shows each process its own
    ],
)
def test_each_process_has_a_gpu_of_its_own(gpus, local, device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    for name, value in ({} if local is None else ranks(4)[local]).items():
        monkeypatch.setenv(name, value)
    assert processes.device() == device


def test_it_ends_as_the_processes_do_and_not_by_a_notice_that_is_ignored(monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["launched", "--steps", "9"])

    def started():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        processes.start(MODULE, 2)

    assert wait(fork(started)) == 2
    out, err = capfd.readouterr()
    assert "process 1 of 2: ['--steps', '9']" in out
    assert not err


def test_where_notices_are_ignored_a_scheduler_stops_all_by_another_signal(monkeypatch, capfd):
    """And each one can save what it has."""
    monkeypatch.setattr(sys, "argv", ["launched", "--stopped"])

    def started():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(processes.on_all_gpus(MODULE, sys.argv[1:], 2))

    assert wait(fork(started)) == 128 + signal.SIGUSR1
    out, _ = capfd.readouterr()
    assert "process 0 of 2: saved" in out and "process 1 of 2: saved" in out


def refused():
    raise InputError("the one sentence.")


def said():
    print("done", file=sys.stderr)


def together(rank, file, work):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2"}
    torch.distributed.init_process_group(
        "gloo",
        f"file://{file}",
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=30),
    )

    def main():
        with processes.one_of_all(rank == 0) as here:
            if here:
                work()

    command_line.run(main)


@pytest.mark.parametrize(
    "work, status, line", [(refused, 2, "error: the one sentence."), (said, 0, "done")]
)
def test_one_process_alone_works_and_says_what_failed(work, status, line, tmp_path, capfd):
    children = [fork(lambda: together(rank, tmp_path / "store", work)) for rank in (0, 1)]
    assert [wait(child) for child in children] == [status, status]
    assert capfd.readouterr().err.splitlines() == [line]


def test_a_single_process_trains_on_a_single_gpu():
    """Not by DataParallel on all, which would take a batch for each."""
    arguments = types.SimpleNamespace(device="cuda:0", n_gpu=2, _n_gpu=2)
    assert trainer.joined(arguments)._n_gpu == 1
