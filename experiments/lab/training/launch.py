"""One process for each GPU, whoever started the first."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta

import torch
from transformers import TrainingArguments

from core.errors import InputError
from experiments.lab import placing

# That processes wait for one of them: to tokenise a corpus, or to read or hash hundreds of gigabytes from a slow disk.
PATIENCE = timedelta(hours=4)
program: str | None = None  # what this process runs, where that is not the module that Python was started with
processes = placing.rank  # (this process, how many train together)


def expected(module: str, count: int | None = None) -> int:
    """How many processes train once :func:`start` was called: `count`, unless a launcher decided.

    Only where `module` is the program that runs: nothing that merely imports it may be started again.

    Args:
        count: one for each GPU, if None.
    """
    launched = "LOCAL_RANK" in os.environ
    runs = program or getattr(getattr(sys.modules["__main__"], "__spec__", None), "name", None)
    wanted = torch.cuda.device_count() if count is None else count
    return processes()[1] if launched or runs != module else max(wanted, 1)


def start(module: str, count: int | None = None) -> None:
    """Run `python -m module` again in as many processes as are expected and exit as they do; return where one is
    enough.

    Where one of them exits with status 2, so does this process.

    Args:
        count: one for each GPU, if None.
    """
    count = expected(module, count)
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
    PartialState(backend="gloo", timeout=PATIENCE)
