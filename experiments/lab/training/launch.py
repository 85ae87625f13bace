"""One process for each GPU, whoever started the first."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable

import torch
from transformers import TrainingArguments

from core.errors import InputError

program: str | None = None  # what this process runs, where that is not the module that Python was started with


def processes() -> tuple[int, int]:
    """(this process, how many train together); a WORLD_SIZE without a RANK is not a launcher's."""
    if "RANK" not in os.environ:
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ.get("WORLD_SIZE", "1"))


def expected(module: str) -> int:
    """How many processes train once :func:`on_every_gpu` was called: one for each GPU, unless a launcher decided.

    Only where `module` is the program that runs: nothing that merely imports it may be started again.
    """
    launched = "RANK" in os.environ or "LOCAL_RANK" in os.environ
    runs = program or getattr(getattr(sys.modules["__main__"], "__spec__", None), "name", None)
    return processes()[1] if launched or runs != module else max(torch.cuda.device_count(), 1)


def on_every_gpu(module: str) -> None:
    """Run `python -m module` again with a process for each GPU and exit as they do; return where one is enough.

    Where one of them exits with status 2, so does this process.
    """
    count = expected(module)
    if count == processes()[1]:
        return
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    sys.stdout.flush()
    logging.disable(logging.ERROR)  # the processes say themselves what failed
    line = ["--standalone", f"--nproc-per-node={count}", "-m", module, *sys.argv[1:]]
    try:
        run.run(run.parse_args(line))
    except ChildFailedError as error:
        sys.exit(_status({failure.exitcode for failure in error.failures.values()}))
    except SignalException as signalled:
        sys.exit(128 + signalled.sigval)
    sys.exit(0)


def _status(codes: set[int]) -> int:
    """The exit status of processes that ended so; of those that a signal ended, as a shell has it, saying which."""
    ended = codes - {-signal.SIGTERM} or codes  # which the others are sent
    code = 2 if 2 in ended else max(ended)
    if code >= 0:
        return code
    if code != -signal.SIGTERM:
        name = signal.Signals(-code).name
        print(f"error: {name} ended a process, as the system does for want of memory; the same command goes on from "
              "the last checkpoint.", file=sys.stderr)  # fmt: skip
    return 128 - code


def join(arguments: TrainingArguments) -> TrainingArguments:
    """Join the processes, which ZeRO-3 needs when a model is loaded; one alone trains on one GPU."""
    assert arguments.device  # looking at it joins them
    if arguments.n_gpu > 1:  # else it would take a batch for each GPU, that many times what was asked for
        arguments._n_gpu = 1
    return arguments


def once(work: Callable[[], object], here: bool) -> None:
    """Do `work` in one of the processes while the others wait; where it fails all end, and that one alone says why.

    Args:
        here: whether this is the process that does it.
    """
    together = torch.distributed.is_available() and torch.distributed.is_initialized()
    if not together:
        work()
        return
    failure = None
    try:
        if here:
            work()
    except Exception as error:
        failure = error
    failed = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(failed, failure and (2 if isinstance(failure, InputError) else 1))
    if failure:
        raise failure
    if any(failed):
        sys.exit(max(filter(None, failed)))


def join_on_cpu() -> None:
    """Let the processes that a launcher started train under DeepSpeed without a GPU.

    accelerate joins processes for DeepSpeed on accelerators only, unless it is told the backend.
    """
    from accelerate import PartialState
    from deepspeed.ops import __compatible_ops__

    __compatible_ops__["deepspeed_shm_comm"] = False  # else it is compiled for minutes; gloo serves as well
    os.environ["ACCELERATE_USE_DEEPSPEED"] = "true"
    PartialState(backend="gloo")
