"""One process for each GPU, whoever started the first."""

from __future__ import annotations

import os
import sys

import torch


def processes() -> tuple[int, int]:
    """(this process, how many train together)."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def on_every_gpu(module: str) -> None:
    """Start `python -m module` again with a process for each GPU, unless a launcher did or there is at most one."""
    count = torch.cuda.device_count()
    if count > 1 and "WORLD_SIZE" not in os.environ:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        sys.stdout.flush()
        os.execv(sys.executable, [*launcher, "-m", module, *sys.argv[1:]])


def join_on_cpu() -> None:
    """Let the processes that a launcher started train under DeepSpeed without a GPU.

    accelerate joins processes for DeepSpeed on accelerators only, unless it is told the backend.
    """
    from accelerate import PartialState
    from deepspeed.ops import __compatible_ops__

    __compatible_ops__["deepspeed_shm_comm"] = False  # else it is compiled for minutes; gloo serves as well
    os.environ["ACCELERATE_USE_DEEPSPEED"] = "true"
    PartialState(backend="gloo")
