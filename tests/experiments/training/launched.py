"""What a launcher starts in place of a training: a line that says so, and the exit status that was
asked for.

python -m tests.experiments.training.launched STATUS_OF_0 STATUS_OF_1 [SIGNAL to the launcher]
"""

import os
import signal
import sys
import time

rank = int(os.environ["RANK"])
status = int(sys.argv[1 + rank])
# In one piece: `print` writes the line's end by itself, and the other process may write in between.
os.write(1, f"process {rank} of {os.environ['WORLD_SIZE']}: {sys.argv[1:]}\n".encode())
if sys.argv[3:] and not rank:
    os.kill(os.getppid(), getattr(signal, sys.argv[3]))
time.sleep(
    0 if status or not any(map(int, sys.argv[1:3])) else 3
)  # as one that waits for another which has ended
sys.exit(status)
