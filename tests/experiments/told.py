"""A command for tests: it appends what it was started with, and when it began and ended, to the file named first.

It leaves a record beside that file, whose path it prints.

Where its name is "parent", it first writes the id of a process that it started and waits for it.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    file, name = sys.argv[1:]
    if name == "parent":
        child = subprocess.Popen(["sleep", "60"])
        Path(file).write_text(str(child.pid))
        child.wait()
    told = {
        "name": name,
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "began": time.time(),
    }
    time.sleep(0.1)
    with open(file, "a", encoding="utf-8") as out:
        out.write(json.dumps(told | {"ended": time.time()}) + "\n")
    record = Path(file).with_name(f"{name}.json")
    record.write_text("{}")
    print(record)
