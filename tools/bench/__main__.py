"""Compare this implementation with a plain one on the same work: seconds and peak memory.

    python -m tools.bench [selection] [perplexity] [generation] [training] [--length 8192]

Each way runs in processes of its own, so that its peak memory is measured alone. The ways take turns, so that a slow
phase of the machine affects both. What they compute must agree. All work is in tools/bench/work.py.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

from experiments.kit import command_line
from experiments.kit.command_line import option
from experiments.kit.records import ROOT, environment
from tools.bench.work import WORK


def run(name: str, way: str, length: int) -> dict:
    """Run one way in this process: its result, seconds by the clock and of the processor, and MB."""
    case = WORK[name]
    work = case.prepare(*getattr(case, way), length)
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return {
        "seconds": time.perf_counter() - wall,
        "processor": time.process_time() - processor,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "loaded": loaded / 1024,
        "result": result,
    }


def agreement(ours: list, plain: list) -> str:
    if isinstance(plain[0], float):
        return f"largest difference {np.abs(np.subtract(ours, plain)).max():.1e}"
    return f"{sum(a == b for a, b in zip(ours, plain, strict=True))} of {len(plain)} equal"


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m tools.bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"work to compare (default all): {', '.join(WORK)}")
    option(parser, "--length", command_line.count, "N", "tokens (default: each work's own)")
    option(parser, "--rounds", command_line.count, "N", "runs of each way", 2)
    parser.add_argument("--way", choices=("ours", "plain"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(WORK):
        parser.error(f"there is no work {min(unknown)!r}; choose among {', '.join(WORK)}")
    for name in arguments.names or WORK:
        length = arguments.length or WORK[name].length
        if arguments.way:
            print(json.dumps(run(name, arguments.way, length)))
            return
        runs: dict[str, list[dict]] = {"ours": [], "plain": []}
        for way in list(runs) * arguments.rounds:
            command = [sys.executable, "-m", "tools.bench", name, "--length", str(length), "--way", way]
            done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            runs[way].append(json.loads(done.stdout.splitlines()[-1]))
        ours, plain = (
            {key: statistics.median(run[key] for run in of) for key in ("seconds", "processor", "peak", "loaded")}
            for of in runs.values()
        )
        print(
            f"{name} at {length} tokens: {ours['seconds']:.3g} s against {plain['seconds']:.3g} s "
            f"({plain['seconds'] / ours['seconds']:.2f} × as fast; {plain['processor'] / ours['processor']:.2f} × by "
            f"processor time), peak {ours['peak']:.0f} MB against {plain['peak']:.0f} MB (before it "
            f"{ours['loaded']:.0f} MB); {agreement(*(of[0]['result'] for of in runs.values()))}",
            flush=True,
        )
    print(json.dumps(environment()))


if __name__ == "__main__":
    command_line.run(main)
