r"""A table as LaTeX (booktabs, graphicx): a float for each block, an interval below its value.

LaTeX measures: a block that is wider than the page is scaled to it. To have intervals beside the values, a document
defines \withinterval itself.
"""

from __future__ import annotations

import re

from tables.kit.table import Block, Cell, Table

_PREAMBLE = (
    r"% \usepackage{booktabs,graphicx}",
    r"\providecommand{\withinterval}[2]{\begin{tabular}[t]{@{}r@{}}#1\\[-2pt]\scriptsize #2\end{tabular}}",
)
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#",
    "_": r"\_\allowbreak{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
    "−": "$-$", "×": r"$\times$", "≤": r"$\le$", "≥": r"$\ge$", "Δ": r"$\Delta$", "ε": r"$\epsilon$", "λ": r"$\lambda$",
    "θ": r"$\theta$", "ρ": r"$\rho$", "β": r"$\beta$", "α": r"$\alpha$", "‖": r"$\|$", "·": r"$\cdot$",
    "…": r"\ldots{}", "--": "-{}-", "–": "--", "—": "---", "“": "``", "”": "''", "√": r"$\sqrt{}$", "→": r"$\to$",
    "′": "$'$", "\N{NO-BREAK SPACE}": "~", "\N{NARROW NO-BREAK SPACE}": r"\,",
}  # fmt: skip
# The paper's symbols, where they stand alone; n̂ is two characters, and the k of 16k is a thousand.
_SYMBOL = r"(?<![^\W\d])(?<!['’.])(?<!\d\d)(?:n\u0302|P_L'|P_L|L'|[LSstbd]|(?<!\d)k)(?![\w'’])"
_MATHEMATICS = {"n\u0302": r"$\hat n$", "P_L'": "$P_{L'}$", "P_L": "$P_L$"}
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_MARKED = re.compile(
    rf"(?P<symbol>{_SYMBOL})|(?P<exponent>⁻?[⁰¹²³⁴-⁹]+)|(?P<special>{'|'.join(map(re.escape, _SPECIAL))})"
)


def render(table: Table) -> str:
    """A float for each block; the first has the caption, the last the notes."""
    return "\n".join([*_PREAMBLE, *(_float(table, place, block) for place, block in enumerate(table.aligned))])


def _float(table: Table, place: int, block: Block) -> str:
    caption = text(f"{table.heading} {block.title}" if not place else f"{table.name.replace('_', ' ')}: {block.title}")
    rows = [list(map(text, block.header)), *(list(map(_cell, row)) for row in block.rows)]
    head, *body = (" & ".join(row) + r" \\" for row in rows)
    columns = r"p{0.3\textwidth}" * len(block.header) if table.words else "l" + "r" * (len(block.header) - 1)
    notes = table.notes if block is table.aligned[-1] else ()
    return "\n".join([
        r"\begin{table*}\centering\small\setlength{\tabcolsep}{3pt}",
        *([] if not place else [r"\addtocounter{table}{-1}"]),
        rf"\caption{{{caption}}}" + rf"\label{{tab:{table.name}}}" * (not place),
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}\toprule",
        head, r"\midrule", *body,
        r"\bottomrule\end{tabular}}",
        *(rf"\par\smallskip\parbox{{0.95\textwidth}}{{\scriptsize\raggedright {text(note)}}}" for note in notes),
        r"\end{table*}", "",
    ])  # fmt: skip


def _cell(cell: Cell) -> str:
    value = rf"\textbf{{{text(cell.text)}}}" if cell.bold else text(cell.text)
    small = r"\\ \scriptsize ".join(map(text, re.split(r" (?=\()", cell.small))) if cell.small else ""
    return rf"\withinterval{{{value}}}{{{small}}}" if small else value


def text(plain: str) -> str:
    """Escaped, with the paper's symbols as mathematics."""
    return _MARKED.sub(_marked, plain)


def _marked(found: re.Match) -> str:
    mark = found[0]
    if found["symbol"]:
        return _MATHEMATICS.get(mark, f"${mark}$")
    return f"$^{{{mark.translate(_DIGITS)}}}$" if found["exponent"] else _SPECIAL[mark]
