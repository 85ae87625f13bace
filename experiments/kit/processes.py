"""Where this process computes: its rank among the processes that a launcher started, and its GPU;
and starting one process for each GPU, unless a launcher already did.

torchrun and `accelerate launch` state these in RANK, WORLD_SIZE and LOCAL_RANK.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from core.discovery import later
from core.errors import InputError

if TYPE_CHECKING:
    import torch
else:
    torch = later("torch")

PATIENCE = timedelta(weeks=52)  # one process may score for days while the others are done and wait


def rank() -> tuple[int, int]:
    """(this process's rank, the number of processes); without LOCAL_RANK there is no launcher,
    whatever else is set."""
    if not launched():
        return 0, 1
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def is_first() -> bool:
    """Whether this process is the one that prints and writes records."""
    return rank()[0] == 0


def count() -> int:
    """How many processes work together."""
    return rank()[1]


def device() -> str:
    """This process's GPU if there is one, else the CPU."""
    if not torch.cuda.is_available():
        return "cpu"
    # Some schedulers show each process only its own GPU, which is then number 0.
    return (
        "cuda"
        if count() == 1
        else f"cuda:{int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()}"
    )


def join() -> None:
    """Take this process's GPU and join the other processes, before a model is loaded; a second call
    does nothing.

    The processes only wait for each other, so gloo is enough even on GPUs.
    """
    if count() == 1 or torch.distributed.is_initialized():
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(device())
    torch.distributed.init_process_group("gloo", timeout=PATIENCE)


def barrier() -> None:
    """Wait until every process has called this."""
    if count() > 1:
        join()
        torch.distributed.barrier()


def launched() -> bool:
    """Whether a launcher started this process."""
    return "LOCAL_RANK" in os.environ


def expected() -> int:
    """How many processes work together after :func:`start`, at most: those that a launcher started,
    else one for each GPU."""
    return count() if launched() else max(torch.cuda.device_count(), 1)


def start(module: str, number: int) -> None:
    """Run `python -m module` again in so many processes, and exit with their status.

    If one process is enough, return instead. If one of several exits with status 2, so does this
    process.
    """
    if number != count():
        sys.exit(on_all_gpus(module, sys.argv[1:], number))


def on_all_gpus(module: str, arguments: Sequence[str], number: int | str = "gpu") -> int:
    """The exit status of `python -m module` in so many processes, by default one for each GPU."""
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    sys.stdout.flush()
    logging.disable(logging.ERROR)  # the processes report themselves what failed
    # Seconds for the step under way and a checkpoint of it, which take minutes.
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "3600")
    # torchrun would end all at a SIGTERM, even where it is ignored: a scheduler sends it to every
    # process of a job, and its script then stops them by SIGUSR1.
    deaf = (
        ["--signals-to-handle=SIGINT,SIGUSR1"]
        if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        else []
    )
    try:
        run.run(
            run.parse_args(
                ["--standalone", *deaf, f"--nproc-per-node={number}", "-m", module, *arguments]
            )
        )
    except ChildFailedError as error:
        # the others of one that fails are sent SIGTERM, which is least
        code = max(failure.exitcode for failure in error.failures.values())
        if code >= 0:
            return code
        print(
            f"error: {signal.Signals(-code).name} ended a process, as the system does when memory "
            "runs out; run the same command again to resume from the last checkpoint, if there is "
            "one.",
            file=sys.stderr,
        )
        return 128 - code
    except SignalException as stop:
        print(
            "stopped; run the same command again to resume from the last checkpoint, if there is "
            "one.",
            file=sys.stderr,
        )
        return 128 + stop.sigval
    return 0


@contextlib.contextmanager
def one_of_all(here: bool) -> Iterator[bool]:
    """Inside the context, whether this process is the one that works. The others wait at its end;
    if the work fails, all end, and only that process reports the error.

    Args:
        here: whether this process is the one, if there are several.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        yield True
        return
    failure = None
    try:
        yield here
    except Exception as error:
        failure = error
    status = 2 if isinstance(failure, InputError) else int(failure is not None)
    statuses = [0] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(statuses, status)
    if failure:
        raise failure
    if any(statuses):
        sys.exit(max(statuses))
