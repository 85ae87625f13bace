"""Where this process computes: its rank among the processes that a launcher started, and its GPU.

torchrun and `accelerate launch` state these in RANK, WORLD_SIZE and LOCAL_RANK.
"""

from __future__ import annotations

import os
from datetime import timedelta

from core.discovery import later

torch = later("torch")

PATIENCE = timedelta(weeks=52)  # one process may score for days while the others are done and wait


def rank() -> tuple[int, int]:
    """(this process's rank, the number of processes); without LOCAL_RANK there is no launcher,
    whatever else is set."""
    if "LOCAL_RANK" not in os.environ:
        return 0, 1
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def device() -> str:
    """This process's GPU if there is one, else the CPU."""
    if not torch.cuda.is_available():
        return "cpu"
    # Some schedulers show each process only its own GPU, which is then number 0.
    return (
        "cuda"
        if rank()[1] == 1
        else f"cuda:{int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()}"
    )


def join() -> None:
    """Take this process's GPU and join the other processes, before a model is loaded; a second call
    does nothing.

    The processes only wait for each other, so gloo is enough even on GPUs.
    """
    if rank()[1] == 1 or torch.distributed.is_initialized():
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(device())
    torch.distributed.init_process_group("gloo", timeout=PATIENCE)


def barrier() -> None:
    """Wait until every process has called this."""
    if rank()[1] > 1:
        join()
        torch.distributed.barrier()
