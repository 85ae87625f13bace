"""Draw figures from records: figures/MODEL/NAME.pdf and NAME.png.

    python -m figures                        every figure of every model
    python -m figures passkey --model tiny   one of them, and its caption

A figure is a function of a module in figures/ or, beyond the paper, in figures/beyond/, and is then
written to figures/MODEL/beyond/. CONTRIBUTING.md shows how to add one. Its docstring is its
caption: the first paragraph is the title, the second says how to read it. A figure that is the same
to the eye as its file is not written again.
"""

from functools import partial

from analysis import drawing
from experiments.kit import command_line
from figures.kit.draw import draw

main = partial(drawing.main, "figures", draw, __doc__)

if __name__ == "__main__":
    command_line.run(main)
