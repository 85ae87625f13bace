"""Processes that begin as copies of this one, which saves them Python's start and the imports."""

import gc
import importlib
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable

from accelerate.state import AcceleratorState
from tqdm import tqdm

from experiments.kit import command_line


def fork(work: Callable[[], object]) -> int:
    """Call `work` in a copy of this process, which ends with it; the copy's id.

    Its exit status is 0, that of a SystemExit, or 1 for any other exception, whose traceback goes
    to stderr.
    """
    child = os.fork()
    if child:
        return child
    status = 1
    gc.freeze()  # else each collection would go through all that was there before
    # else all copies share one, which stays locked where a kill meets its holder
    tqdm.set_lock(threading.RLock())
    try:
        work()
        status = 0
    except SystemExit as stop:
        status = stop.code or 0
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        sys.__stderr__.flush()
        os._exit(status)


def command(module: str, *arguments, environment: dict[str, str] | None = None) -> int:
    """`python -m module arguments…` in a forked process with these variables added to its own; the
    process's id."""

    def work() -> None:
        os.environ |= environment or {}
        # of what this process has run before
        AcceleratorState._reset_state(reset_partial_state=True)
        sys.argv = [module, *map(str, arguments)]
        command_line.run(importlib.import_module(module).main)

    return fork(work)


def wait(child: int) -> int:
    """The exit status of a forked process; of one that a signal killed, the signal's number below
    zero."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def until(so: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < end
        time.sleep(0.002)


def ranks(count: int = 2) -> list[dict[str, str]]:
    """The environment of each process, as a launcher makes it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    both = {
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    return [both | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
