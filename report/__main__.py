"""Every page that `python -m report.pages` writes, as one HTML file.

    python -m report

writes build/report/index.html, which holds its figures and needs nothing else to be read. The report on records of
another folder is report/index.html beside that folder.
"""

from __future__ import annotations

import os

from analysis import results
from analysis.results import root
from core import files
from core.errors import InputError
from experiments.kit import command_line
from experiments.kit.records import RESULTS, ROOT
from report import html


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report")
    parser.add_argument("--output", type=command_line.directory, metavar="DIR", help="default build/report/")
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()
    folder = arguments.results or RESULTS
    if not results.models(folder):
        raise InputError(f"no records under {folder}; measure something, or give --results.")
    place = ROOT / "build" if folder.resolve() == RESULTS else root(folder)
    output = arguments.output or place / "report"
    file = files.write(output / "index.html", html.build(folder))
    print(os.path.relpath(file))


if __name__ == "__main__":
    command_line.run(main)
