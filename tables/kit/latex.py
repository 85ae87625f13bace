r"""A table as LaTeX, with the packages booktabs and graphicx.

An interval stands below its value. LaTeX measures: a table that is wider than the page is scaled to it. One of too many
rows is continued on further pages. To have intervals beside the values, a document defines \withinterval itself.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tables.kit.table import Block, Cell, Table

_TITLE, _HEADER = 80, 10  # characters from which a block's title and a column's are broken into lines
_PAGE, _LINE, _SMALL = 680, 12.2, 10  # points: the height of a page's text, of a line, and of one of small print
_ABOVE = 5 * _LINE  # of a block's title, header and rules
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#",
    "_": r"\_\allowbreak{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
    "−": "$-$", "×": r"$\times$", "≤": r"$\le$", "≥": r"$\ge$", "Δ": r"$\Delta$", "ε": r"$\epsilon$", "λ": r"$\lambda$",
    "θ": r"$\theta$", "ρ": r"$\rho$", "β": r"$\beta$", "α": r"$\alpha$", "‖": r"$\|$", "·": r"$\cdot$",
    "…": r"\ldots{}", "--": "-{}-",  # two hyphens, such as an option begins with, would become a dash
    "–": "--", "—": "---", "“": "``", "”": "''", "√": r"$\sqrt{}$", "→": r"$\to$", "′": "$'$",
    "\N{NO-BREAK SPACE}": "~", "\N{NARROW NO-BREAK SPACE}": r"\,",
}  # fmt: skip
# The paper's symbols, where they stand alone; n̂ is two characters, and the k of 16k is a thousand.
_SYMBOL = r"(?<![^\W\d])(?<!['’.])(?<!\d\d)(?:n\u0302|P_L'|P_L|L'|[LSstbd]|(?<!\d)k)(?![\w'’])"
_MATHEMATICS = {"n\u0302": r"$\hat n$", "P_L'": "$P_{L'}$", "P_L": "$P_L$"}
_PREAMBLE = (
    r"% \usepackage{booktabs,graphicx}",
    r"\providecommand{\withinterval}[2]{\begin{tabular}[t]{@{}r@{}}#1\\[-2pt]\scriptsize #2\end{tabular}}",
)
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_MARKED = re.compile(
    rf"(?P<symbol>{_SYMBOL})|(?P<exponent>⁻?[⁰¹²³⁴-⁹]+)|(?P<special>{'|'.join(map(re.escape, _SPECIAL))})"
)


def render(table: Table) -> str:
    """A floating table, and a further one for each page on which it is continued; notes below it in small print."""
    pages = list(_pages(table))
    floats = (_float(table, blocks, place, len(pages)) for place, blocks in enumerate(pages))
    return "\n".join([*_PREAMBLE, *floats])


def _float(table: Table, blocks: list[Block], place: int, count: int) -> str:
    heading = text(table.heading) if not place else f"{text(table.name.replace('_', ' '))}, continued."
    shares, columns = _shares(table), max(len(block.header) for block in table.blocks)
    layout = "".join(rf"p{{{share:.3f}\textwidth}}" for share in shares) or "l" + "r" * (columns - 1)
    notes = table.notes if place == count - 1 else ()
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering",
            rf"\{'footnotesize' if shares else 'small'}\setlength{{\tabcolsep}}{{3pt}}",
            *([r"\addtocounter{table}{-1}"] if place else []),
            rf"\caption{{{heading}}}",
            *([] if place else [rf"\label{{tab:{table.name}}}"]),
            r"\smallskip",
            r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{@{{}}{layout}@{{}}}}",
            r"\toprule",
            *(line for block in blocks for line in _block(block, block is blocks[-1], table.words)),
            r"\end{tabular}}",
            *(rf"\par\smallskip\parbox{{0.95\textwidth}}{{\scriptsize\raggedright {text(note)}}}" for note in notes),
            r"\end{table*}",
            "",
        ]
    )


def _block(block: Block, last: bool, words: bool) -> Iterator[str]:
    end = r" \tabularnewline"
    for line in textwrap.wrap(block.title, _TITLE):
        yield rf"\leavevmode\rlap{{\emph{{{text(line)}}}}}{end}"  # does not widen the first column
    if block.rows:
        yield " & ".join(map(text if words else _header, block.header)) + end
        yield rf"\cmidrule(r){{1-{len(block.header)}}}"
    for row in block.rows:
        yield " & ".join(rf"\raggedright {text(cell.text)}" if words else _cell(cell) for cell in row) + end
    yield r"\bottomrule" if last else r"\midrule"


def _header(title: str) -> str:
    lines = list(map(text, textwrap.wrap(title, _HEADER, break_long_words=False)))
    stacked = r"\\{}".join(lines)  # the braces: LaTeX would read a bracket behind \\ as a length
    return rf"\shortstack[r]{{{stacked}}}" if len(lines) > 1 else stacked


def _cell(cell: Cell) -> str:
    value = rf"\textbf{{{text(cell.text)}}}" if cell.bold else text(cell.text)
    small = r"\\ \scriptsize ".join(map(text, _parts(cell)))
    return rf"\withinterval{{{value}}}{{{small}}}" if small else value


def _parts(cell: Cell) -> list[str]:
    """The lines of small print: it is divided where a parenthesis begins."""
    return re.split(r" (?=\()", cell.small) if cell.small else []


def _shares(table: Table) -> list[float]:
    """The widths of columns of words as shares of the page's, wider where there is more to read; of numbers, none."""
    if not table.words:
        return []
    rows = [row for block in table.blocks for row in block.rows]
    roots = [math.sqrt(max(10, *(len(cell.text) for cell in column))) for column in zip(*rows)]
    room = 1 - 0.014 * (len(roots) - 1)  # without the space between columns
    return [room * root / sum(roots) for root in roots]


def _pages(table: Table) -> Iterator[list[Block]]:
    """The blocks of each page."""
    shares = _shares(table)
    room = _PAGE - 14 * (2 + len(table.heading) // 80) - _SMALL * sum(2 + len(note) // 110 for note in table.notes)

    def height(row: Sequence[Cell]) -> float:
        if shares:
            return _LINE * max(math.ceil(len(cell.text) / (95 * share)) for cell, share in zip(row, shares))
        return _LINE + _SMALL * max(len(_parts(cell)) for cell in row)

    page: list[Block] = []
    used = 0.0
    for block in table.aligned:
        most = max(int((room - _ABOVE) / max(map(height, block.rows), default=_LINE)), 1)
        for start in range(0, max(len(block.rows), 1), most):
            part = replace(block, rows=block.rows[start : start + most])
            if start and block.title:
                part = replace(part, title=f"{block.title} (continued)")
            points = _ABOVE + sum(map(height, part.rows))
            if page and used + points > room:
                yield page
                page, used = [], 0.0
            page.append(part)
            used += points
    yield page


def text(plain: str) -> str:
    """Escaped, with the paper's symbols as mathematics."""
    return _MARKED.sub(_marked, plain)


def _marked(found: re.Match) -> str:
    mark = found[0]
    if found["symbol"]:
        return _MATHEMATICS.get(mark, f"${mark}$")
    return f"$^{{{mark.translate(_DIGITS)}}}$" if found["exponent"] else _SPECIAL[mark]
