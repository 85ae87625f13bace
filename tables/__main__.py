"""Draw tables from records: tables/MODEL/NAME.tex.

    python -m tables                      every table of every model
    python -m tables ruler --model tiny   one of them, printed as text, too

A table is a function of a module in tables/ or, beyond the paper, in tables/beyond/, and is then
written to tables/MODEL/beyond/. An experiment that has records and no table here gets one of the
scores that they hold.
"""

from functools import partial

from analysis import drawing
from experiments.kit import command_line
from tables.kit.draw import draw

main = partial(drawing.main, "tables", draw, __doc__)

if __name__ == "__main__":
    command_line.run(main)
