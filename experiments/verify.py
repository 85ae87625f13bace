"""Compare records measured on this machine with the committed ones, number by number.

    python -m experiments.verify build/verify/results

For each measured record it finds the record of the same name in results/ and prints the largest difference of any
score: averages, intervals and single blocks, but not durations and environment. The exit status is 1 if a difference
exceeds the tolerance.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

from core.errors import InputError
from experiments.kit import command_line, records

_NOT_COMPARED = {"seconds", "environment", "identity", "ran_on"}


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.verify")
    parser.add_argument("measured", type=Path, help="the directory of the records measured here")
    command_line.option(parser, "--tolerance", float, "N", "largest absolute difference allowed", 2e-3)
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()

    if not arguments.tolerance >= 0:
        raise InputError(f"the tolerance is {arguments.tolerance}; give a number of 0 or more.")
    files = sorted(file for file in arguments.measured.rglob("*.json") if file.name != records.MODEL)
    if not files:
        raise InputError(f"no records under {arguments.measured}; measure first.")
    results, differing, new = arguments.results or records.RESULTS, 0, 0
    for file in files:
        name = file.relative_to(arguments.measured)
        committed = results / name
        if not committed.exists():
            print(f"{'new':>12}  {name}")
            new += 1
            continue
        difference = largest_difference(records.read(file), records.read(committed))
        differing += not difference <= arguments.tolerance  # NaN agrees with nothing
        print(f"{difference:12.1e}  {name}")
    if new == len(files):
        raise InputError(f"none of these {new} records has a counterpart under {results}; give another --results.")
    verdict = f"{differing} of them DIFFER from" if differing else "all agree with"
    alone = f", {new} new" if new else ""
    print(f"{len(files) - new} records{alone}; {verdict} the committed ones (tolerance {arguments.tolerance:g}).")
    sys.exit(1 if differing else 0)


def largest_difference(first: dict, second: dict) -> float:
    """The largest absolute difference of corresponding numbers; infinite if the structure or a text differs."""
    first, second = dict(_leaves(first)), dict(_leaves(second))
    if first.keys() != second.keys():
        return float("inf")
    differences = [_difference(first[key], second[key]) for key in first]
    return float("nan") if any(map(math.isnan, differences)) else max(differences, default=0.0)


def _difference(a: object, b: object) -> float:
    numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (a, b))
    return abs(a - b) if numbers else 0.0 if (type(a), a) == (type(b), b) else float("inf")


def _leaves(node: object, key: tuple = ()) -> Iterator[tuple[tuple, object]]:
    if not node:  # keep empty values as leaves: an empty list, an empty object and a missing value all differ
        yield key, node
    elif isinstance(node, dict):
        for name, value in node.items():
            if name not in _NOT_COMPARED:
                yield from _leaves(value, (*key, name))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _leaves(value, (*key, index))
    else:
        yield key, node


if __name__ == "__main__":
    command_line.run(main)
