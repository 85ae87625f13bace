"""Every page that `python -m report.pages` writes, as one HTML file.

    python -m report

writes build/report/index.html, which holds its figures and needs nothing else to be read. The
report on records of another folder is report/index.html beside that folder.
"""

import os

from analysis.results import root
from core import files
from experiments.kit import command_line
from experiments.kit.records import RESULTS, ROOT
from report import html


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report")
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()
    folder = arguments.results or RESULTS
    place = ROOT / "build" if folder.resolve() == RESULTS else root(folder)
    file = files.write(place / "report" / "index.html", html.build(folder))
    print(os.path.relpath(file))


if __name__ == "__main__":
    command_line.run(main)
