"""Measure a part anew and compare it with the committed records, number by number.

    python -m experiments.verify
    python -m experiments.verify OTHER/results

What is measured here goes under build/verify/, into a folder of the code that measures: after a
change it is measured anew. For each record there, or under OTHER/results, it finds the record of
the same name in results/ and prints the largest difference of any score: averages, intervals and
single blocks, but not durations and environment. The exit status is 1 if a difference exceeds the
tolerance, or if what was measured here has no such record.
"""

import itertools
import math
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import records
from core import discovery
from core.errors import InputError
from experiments.kit import command_line

# What is measured anew; what is beyond the paper is left out where it is not there.
MEASURED = (
    "perplexity --model tiny --method dprope",
    "loss_by_position --model smollm2 --method dprope --texts packaged:1",
)
_NOT_COMPARED = {"environment", "identity", "sha256"}


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.verify")
    parser.add_argument(
        "measured",
        type=command_line.path,
        nargs="?",
        help="compare the records in this directory; measure none",
    )
    command_line.option(
        parser, "--tolerance", command_line.number, "N", "largest absolute difference allowed", 2e-3
    )
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()

    differing = compare(
        arguments.measured or measured_anew(),
        arguments.results or records.RESULTS,
        arguments.tolerance,
        every=not arguments.measured,
    )
    sys.exit(1 if differing else 0)


def measured_anew() -> Path:
    """The folder of the records that are measured here, on the CPU as the committed ones are."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    results = records.ROOT / f"build/verify/{records.code_hash()}/results"
    for line in MEASURED:
        name, *words = shlex.split(line)
        program = discovery.module(records.program(name))
        if program:
            sys.argv = [program.__name__, *words, "--results", str(results)]
            program.main()
    return results


def compare(measured: Path, results: Path, tolerance: float, every: bool = False) -> int:
    """Print each record's largest difference from the one of the same name in `results`; how many
    differ, and with `every` also how many have no such record."""
    names = [
        file.relative_to(measured)
        for file in sorted(measured.rglob("*.json"))
        if file.name != records.MODEL
    ]
    known = [name for name in names if (results / name).exists()]
    if not known:
        raise InputError(
            f"none of {len(names)} records under {measured} has a counterpart under {results}; "
            "measure first, or give another --results."
        )
    differing = 0
    for name in known:
        difference = largest_difference(records.read(measured / name), records.read(results / name))
        differing += difference > tolerance
        print(f"{difference:12.1e}  {name}")
    verdict = f"{differing} DIFFER from" if differing else "all agree with"
    print(
        f"Of {len(known)} records that were measured, {verdict} the committed ones to within "
        f"{tolerance:g}."
    )
    if others := len(names) - len(known):
        print(f"{others} have no counterpart there{', which counts as a difference' * every}.")
    return differing + (others if every else 0)


def largest_difference(first: Any, second: Any) -> float:
    """The largest absolute difference of corresponding numbers; infinite if the structure or a text
    differs."""
    if isinstance(first, dict) and isinstance(second, dict):
        names = first.keys() - _NOT_COMPARED
        if names != second.keys() - _NOT_COMPARED:
            return math.inf
        pairs = [(first[name], second[name]) for name in names]
    elif isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            return math.inf
        pairs = [*zip(first, second)]
    elif {type(first), type(second)} <= {int, float}:
        return abs(first - second)
    else:
        return 0.0 if (type(first), first) == (type(second), second) else math.inf
    return max(itertools.starmap(largest_difference, pairs), default=0.0)


if __name__ == "__main__":
    command_line.run(main)
