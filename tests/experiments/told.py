"""A command for tests: it appends what it was started with, and when it began and ended, to the file named first."""

import json
import os
import sys
import time


def main() -> None:
    from experiments.lab.training import launch

    file, name = sys.argv[1:]
    told = {"name": name, "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"), "program": launch.program, "began": time.time()}
    time.sleep(0.5)
    with open(file, "a", encoding="utf-8") as out:
        out.write(json.dumps(told | {"ended": time.time()}) + "\n")
