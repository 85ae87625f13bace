"""Measure a part anew and compare it with the committed records and with the paper, number by
number.

    python -m experiments.verify
    python -m experiments.verify OTHER/results

What is measured here goes under build/verify/, into a folder of the code that measures: after a
change it is measured anew. For each record there, or under OTHER/results, it finds the record of
the same name in results/ and prints the largest difference of any score: averages, intervals and
single blocks, but not durations and environment. The disturbances of the paper's Table 3 are
computed and compared with the printed ones. The exit status is 1 if a difference exceeds the
tolerance.
"""

from __future__ import annotations

import importlib
import math
import shlex
import sys
from pathlib import Path

from core.errors import InputError
from experiments.base_models import llama2
from experiments.disturbance import FLOAT32, of_method, published
from experiments.kit import command_line, records

# What is measured anew; what is beyond the paper is left out where it is not there.
MEASURED = (
    "perplexity --model tiny --method dprope",
    "loss_by_position --model smollm2 --method dprope --packaged 1",
)
PRINTED = 5e-3  # the largest relative difference from the paper's disturbances
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

    differing = 0 if arguments.measured else compare_with_paper()
    differing += compare(
        arguments.measured or measured_anew(),
        arguments.results or records.RESULTS,
        arguments.tolerance,
    )
    sys.exit(1 if differing else 0)


def compare_with_paper() -> int:
    """Print how far the disturbances of the paper's Table 3 are from the computed ones; how many
    are too far."""
    differing = 0
    for (method, factor), printed in published().items():
        computed = of_method(llama2.GEOMETRY, method, factor, {}, FLOAT32)
        difference = abs(computed.average / printed - 1)
        differing += not difference <= PRINTED
        print(f"{difference:12.1e}  of the paper's disturbance of {method} at s = {factor:g}")
    verdict = f"{differing} of them DIFFER from" if differing else "all agree with"
    print(
        f"{len(published())} disturbances; {verdict} the paper's (relative tolerance {PRINTED:g})."
    )
    return differing


def measured_anew() -> Path:
    """The folder of the records that are measured here."""
    commands = [[records.program(name), *words] for name, *words in map(shlex.split, MEASURED)]
    commands = [command for command in commands if importlib.util.find_spec(command[0])]
    results = records.ROOT / "build" / "verify" / records.code_hash() / "results"
    for program, *words in commands:
        sys.argv = [program, *words, "--results", str(results)]
        importlib.import_module(program).main()
    return results


def compare(measured: Path, results: Path, tolerance: float) -> int:
    """Print each record's largest difference from the one of the same name in `results`; how many
    differ."""
    files = sorted(file for file in measured.rglob("*.json") if file.name != records.MODEL)
    differing = 0
    new = 0
    if not files:
        raise InputError(f"no records under {measured}; measure first.")
    for file in files:
        name = file.relative_to(measured)
        if not (results / name).exists():
            print(f"{'new':>12}  {name}")
            new += 1
            continue
        difference = largest_difference(records.read(file), records.read(results / name))
        differing += difference > tolerance
        print(f"{difference:12.1e}  {name}")
    if new == len(files):
        raise InputError(
            f"none of these {new} records has a counterpart under {results}; give another "
            f"--results."
        )
    verdict = f"{differing} of them DIFFER from" if differing else "all agree with"
    alone = f", {new} new" if new else ""
    print(
        f"{len(files) - new} records{alone}; {verdict} the committed ones (tolerance "
        f"{tolerance:g})."
    )
    return differing


def largest_difference(first: object, second: object) -> float:
    """The largest absolute difference of corresponding numbers; infinite if the structure or a text
    differs."""
    if isinstance(first, dict) and isinstance(second, dict):
        names = [name for name in first if name not in _NOT_COMPARED]
        if set(names) != second.keys() - _NOT_COMPARED:
            return math.inf
        return max((largest_difference(first[name], second[name]) for name in names), default=0.0)
    if isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            return math.inf
        return max(map(largest_difference, first, second), default=0.0)
    if all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in (first, second)
    ):
        return abs(first - second)
    return 0.0 if (type(first), first) == (type(second), second) else math.inf


if __name__ == "__main__":
    command_line.run(main)
