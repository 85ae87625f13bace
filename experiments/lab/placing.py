"""Where this process computes: its place among those that a launcher started, and its GPU.

torchrun and `accelerate launch` tell it in RANK, WORLD_SIZE and LOCAL_RANK.
"""

from __future__ import annotations

import os
from datetime import timedelta

PATIENCE = timedelta(weeks=52)  # one process may score for days while the others, which are done, wait


def rank() -> tuple[int, int]:
    """(this process, how many there are); a platform that sets WORLD_SIZE or RANK by itself is no launcher."""
    if "LOCAL_RANK" not in os.environ:
        return 0, 1
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def device() -> str:
    """The GPU that is this process's where there is one, else the CPU."""
    import torch  # records ask for the rank without it

    if not torch.cuda.is_available():
        return "cpu"
    # Some schedulers show each process its own GPU alone, which is then the first.
    return "cuda" if rank()[1] == 1 else f"cuda:{int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()}"


def place() -> None:
    """Take this process's GPU and join the others, before a model is loaded; does nothing a second time.

    The processes only wait for each other, for which gloo does, whatever they compute on.
    """
    import torch

    if rank()[1] == 1 or torch.distributed.is_initialized():
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(device())
    torch.distributed.init_process_group("gloo", timeout=PATIENCE)


def wait() -> None:
    """Until every process has come here."""
    import torch

    if rank()[1] > 1:
        place()
        torch.distributed.barrier()
