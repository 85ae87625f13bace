"""Up to nine minutes of one H100 (or A100, 80 GB): what a CPU cannot show of the paper's scale.

    python -m tools.bench [PART ...] [--toy] [--output CSV]

Each part runs in a process of its own, within a time limit; one that fails does not stop the others. Rows, each with
the device, the versions and the commit, are added to tools/bench/results/gpu.csv. What was made faster is measured
beside what it replaced. --toy takes tiny sizes and any machine; its rows go to build/gpu-toy.csv and mean nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import torch

from core.errors import InputError
from experiments.kit import command_line
from experiments.kit.records import ROOT
from tools.bench import evaluation, training
from tools.bench.kit import Bench

# Each part, whose docstring says what it measures, and its most minutes.
PARTS = {
    "training": (training.steps, 3),
    "passkeys": (evaluation.passkeys, 5),
    "attention": (evaluation.attention, 1),
}


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m tools.bench")
    parser.add_argument("parts", nargs="*", metavar="PART", help="parts to run (default all)")
    parser.add_argument("--toy", action="store_true", help="use tiny sizes, even without a GPU; numbers mean nothing")
    parser.add_argument("--output", type=Path, metavar="CSV", help="add rows to this file")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # run the part in this process
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {min(unknown)!r}; choose among {', '.join(PARTS)}")
    if not (arguments.toy or torch.cuda.is_available()):
        raise InputError("there is no GPU here; give --toy to try the code at tiny sizes.")
    default = ROOT / ("build/gpu-toy.csv" if arguments.toy else "tools/bench/results/gpu.csv")
    output = (arguments.output or default).absolute()
    if arguments.here:
        PARTS[arguments.parts[0]][0](Bench(arguments.toy, output))
        return
    failed = []
    for part in arguments.parts or PARTS:
        minutes, began = PARTS[part][1], time.monotonic()
        print(f"== {part}, at most {minutes} minutes", flush=True)
        command = [sys.executable, "-m", "tools.bench", part, "--here", "--output", str(output)]
        try:
            subprocess.run(command + ["--toy"] * arguments.toy, cwd=ROOT, check=True, timeout=60 * minutes)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            failed.append(part)
        print(f"== {part} took {time.monotonic() - began:.0f} s", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    command_line.run(main)
