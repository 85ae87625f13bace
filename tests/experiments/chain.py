"""A stand-in for a chain's process: `python -m tests.experiments.chain FOLDER --chain N`.

It writes FOLDER/N once and says what it skips. A file FOLDER/fails-N makes it fail, and
FOLDER/skips-N skip a command; with FOLDER/waits-N it starts a process first, writes the ids of both
to FOLDER/N.pids, and waits.
"""

import os
import subprocess
import sys
from pathlib import Path

folder = Path(sys.argv[1])
number = sys.argv[3]
if (folder / f"waits-{number}").exists():
    child = subprocess.Popen(["sleep", "60"])
    (folder / f"{number}.part").write_text(f"{os.getpid()}")
    (folder / f"{number}.part").rename(folder / f"{number}.pids")
    child.wait()
if (folder / f"fails-{number}").exists():
    sys.exit(f"error: number {number} is wrong")
print(f"skipped {number}: too long")
with open(folder / number, "a", encoding="utf-8") as file:
    file.write("done\n")
if (folder / f"skips-{number}").exists():
    sys.exit(print(f"skipped the command {number}: refused") or 1)
