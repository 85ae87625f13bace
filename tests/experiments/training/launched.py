"""What a launcher starts in place of a training: the first process sends it a signal and waits, the
second ends with status 2; or with --stopped, waits until it is told to stop."""

import os
import signal
import sys
import time


def say(what: str) -> None:
    # In one piece: `print` writes the end of a line by itself, and the other may write in between.
    os.write(1, f"process {rank} of {os.environ['WORLD_SIZE']}: {what}\n".encode())


def stop(number: int, _) -> None:
    say("saved")
    sys.exit(128 + number)


rank = int(os.environ["RANK"])
stopped = "--stopped" in sys.argv
if stopped:
    signal.signal(signal.SIGUSR1, stop)
say(str(sys.argv[1:]))
if rank and not stopped:
    sys.exit(2)
if not rank:
    if stopped:
        time.sleep(1)  # until the other one listens
    os.kill(os.getppid(), signal.SIGUSR1 if stopped else signal.SIGTERM)
time.sleep(3)
