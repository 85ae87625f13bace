"""What a launcher starts in place of a training: the first process sends it a notice to end and
waits, the second ends with status 2."""

import os
import signal
import sys
import time

rank = int(os.environ["RANK"])
# In one piece: `print` writes the line's end by itself, and the other process may write in between.
os.write(1, f"process {rank} of {os.environ['WORLD_SIZE']}: {sys.argv[1:]}\n".encode())
if rank:
    sys.exit(2)
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(3)
