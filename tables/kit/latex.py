r"""A table as LaTeX (booktabs, graphicx): a float for each block, an interval below its value.

LaTeX measures: a block that is wider than the page is scaled to it. To have intervals beside the
values, a document defines \withinterval itself.
"""

import re
from dataclasses import replace

from tables.kit.table import Block, Cell, Table

_PREAMBLE = (
    r"% \usepackage{booktabs,graphicx}",
    r"\providecommand{\withinterval}[2]{"
    r"\begin{tabular}[t]{@{}r@{}}#1\\[-2pt]\scriptsize #2\end{tabular}}",
)
_ROWS = 22  # of a float; a row with intervals is up to three lines high
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_\allowbreak{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "Δ": r"$\Delta$",
    "ε": r"$\epsilon$",
    "λ": r"$\lambda$",
    "θ": r"$\theta$",
    "ρ": r"$\rho$",
    "β": r"$\beta$",
    "α": r"$\alpha$",
    "‖": r"$\|$",
    "·": r"$\cdot$",
    "…": r"\ldots{}",
    "--": "-{}-",
    "–": "--",
    "—": "---",
    "“": "``",
    "”": "''",
    "√": r"$\sqrt{}$",
    "→": r"$\to$",
    "′": "$'$",
    "\N{NO-BREAK SPACE}": "~",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
}
# The paper's symbols, where they stand alone; n̂ is two characters, and the k of 16k is a thousand.
_SYMBOL = r"(?<![^\W\d])(?<!['’.])(?<!\d\d)(?:n\u0302|P_L'|P_L|L'|[LSstbd]|(?<!\d)k)(?![\w'’])"
_MATHEMATICS = {"n\u0302": r"$\hat n$", "P_L'": "$P_{L'}$", "P_L": "$P_L$"}
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_MARKED = re.compile(
    rf"{_SYMBOL}|[<>|]|(?P<exponent>⁻?[⁰¹²³⁴-⁹]+)|{'|'.join(map(re.escape, _SPECIAL))}"
)


def render(table: Table) -> str:
    """A float for each block, or for each piece of one that is higher than a page; the first has
    the caption."""
    lines = list(_PREAMBLE)
    pieces = [
        replace(block, rows=block.rows[start : start + _ROWS])
        for block in table.blocks
        for start in range(0, len(block.rows) or 1, _ROWS)
    ]
    for index, block in enumerate(pieces):
        if index == 0:
            below = f" Below: {block.title}." if block.title else ""
            caption = text(f"{table.heading}{below}".strip())
            start = [rf"\caption{{{caption}}}\label{{tab:{table.name}}}"]
        else:  # under the number of the first
            sketch = " (a sketch)" if table.sketch else ""
            title = text(f"continued{sketch}. {block.title}.")
            start = [r"\addtocounter{table}{-1}", rf"\caption{{{title}}}"]
        lines += [
            r"\begin{table*}\centering\small\setlength{\tabcolsep}{3pt}",
            *start,
            *_tabular(block, table.words),
            r"\end{table*}",
            "",
        ]
    return "\n".join(lines)


def _tabular(block: Block, words: bool) -> list[str]:
    """The lines of a block, scaled to the page where it is wider."""
    columns = "l" + (r"p{0.4\textwidth}" if words else "r") * (len(block.header) - 1)
    return [
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}\toprule",
        " & ".join(map(text, block.header)) + r" \\",
        r"\midrule",
        *(" & ".join(map(_cell, row)) + r" \\" for row in block.rows),
        r"\bottomrule\end{tabular}}",
    ]


def _cell(cell: Cell) -> str:
    value = rf"\textbf{{{text(cell.text)}}}" if cell.bold else text(cell.text)
    if not cell.small:
        return value
    small = r"\\ \scriptsize ".join(map(text, re.split(r" (?=\()", cell.small)))
    return rf"\withinterval{{{value}}}{{{small}}}"


def text(plain: str) -> str:
    """Escaped, with the paper's symbols as mathematics."""
    return _MARKED.sub(_marked, plain)


def _marked(match: re.Match) -> str:
    mark = match[0]
    if match["exponent"]:
        return f"$^{{{mark.translate(_DIGITS)}}}$"
    return (_MATHEMATICS | _SPECIAL).get(mark, f"${mark}$")
