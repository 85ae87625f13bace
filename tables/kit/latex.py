"""A table as LaTeX, with booktabs: it fits an A4 page with margins of 2.5 cm at 11 pt.

A wide table gets smaller print, then its intervals below the values, then its columns in several blocks. A high one is
continued on further pages.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from tables.kit.table import Block, Cell, Table

_WIDTH, _HEIGHT = 450.0, 690.0  # points of a page's text
_NAME, _TITLE = 26, 12  # characters from which a row's name and a column's title are broken, where rows have lines
_BOLD = 1.17  # how much wider bold print is
# Widths of Computer Modern's characters as shares of the type size; of all others, one half.
_WIDTHS = {
    character: width
    for characters, width in (
        ("ijl.,:;'|![]", 0.28), ("ftrsI-/() ", 0.38), ("mw+−=<>×·≤≥→&%", 0.8), ("MW—…", 1.0), ("bdhknpquvxy", 0.54),
        ("ABCDEFGHJKLNOPQRSTUVXYZ", 0.71), ("\N{COMBINING CIRCUMFLEX ACCENT}", 0.1),
    )
    for character in characters
}  # fmt: skip
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#",
    "_": r"\_\allowbreak{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
    "−": "$-$", "×": r"$\times$", "≤": r"$\le$", "≥": r"$\ge$", "Δ": r"$\Delta$", "ε": r"$\epsilon$", "λ": r"$\lambda$",
    "θ": r"$\theta$", "ρ": r"$\rho$", "β": r"$\beta$", "α": r"$\alpha$", "‖": r"$\|$", "·": r"$\cdot$",
    "…": r"\ldots{}",
    "–": "--", "—": "---", "“": "``", "”": "''", "√": r"$\sqrt{}$", "→": r"$\to$", "′": "$'$",
    "⁻": "$^{-}$", "⁰": "$^0$", "¹": "$^1$", "²": "$^2$", "³": "$^3$", "⁴": "$^4$", "⁵": "$^5$", "⁶": "$^6$",
    "⁷": "$^7$", "⁸": "$^8$", "⁹": "$^9$", "\N{NO-BREAK SPACE}": "~", "\N{NARROW NO-BREAK SPACE}": r"\,",
}  # fmt: skip
# The paper's symbols, where they stand alone; n̂ is two characters, and the k of 16k is a thousand.
_SYMBOL = re.compile(r"(?<![^\W\d])(?<!['’.])(?<!\d\d)(n\u0302|P_L'|P_L|L'|[LSstbd]|(?<!\d)k)(?![\w'’])")
_EXPONENT = re.compile("⁻?[⁰¹²³⁴-⁹]+")
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@dataclass(frozen=True)
class _Print:
    """How a table is set.

    Attributes:
        command: its size in LaTeX.
        points, small: the type sizes of values and of what stands behind them.
        line: the height of a line.
        stacked: whether what stands behind a value stands below it.
    """

    command: str
    points: float
    small: float
    line: float
    stacked: bool = False

    def width(self, cell: Cell) -> float:
        """Of a cell, in points."""
        value = _width(cell.text, self.points) * (_BOLD if cell.bold else 1)
        parts = [_width(part, self.small) for part in _parts(cell.small)]
        return max([value, *parts]) if self.stacked else value + sum(parts) + self.points / 3 * len(parts)


_SEPARATED = 3.0  # points on either side of a column
_PRINTS = (
    _Print(r"\small", 10, 8, 12.5),
    _Print(r"\footnotesize", 9.3, 8.5, 11.5),
    _Print(r"\footnotesize", 9.3, 8.5, 11.5, stacked=True),
)


def render(table: Table) -> str:
    """A floating table, and a further one for each page on which it is continued; notes below it in small print."""
    fits = (one for one in _PRINTS if _natural(table.aligned, one) <= _WIDTH)
    chosen = _PRINTS[1] if table.words else next(fits, _PRINTS[-1])
    blocks = list(table.aligned) if table.words else _narrow(table.aligned, chosen)
    shares = _shares(blocks) if table.words else []
    sheets = list(_sheets(table, blocks, chosen, shares))
    return "".join(_float(table, sheet, chosen, shares, place, len(sheets)) for place, sheet in enumerate(sheets))


def _float(table: Table, blocks: list[Block], chosen: _Print, shares: list[float], place: int, count: int) -> str:
    columns = max(len(block.header) for block in blocks)
    heading = text(table.heading) if not place else f"{text(table.name.replace('_', ' '))}, continued."
    layout = "".join(rf"p{{{share:.3f}\textwidth}}" for share in shares) or "l" + "r" * (columns - 1)
    notes = table.notes if place == count - 1 else ()
    width = 0.0 if table.words else _natural(blocks, chosen)
    lines = [line for block in blocks for line in _block(block, columns, block is blocks[-1], chosen, width)]
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering",
            rf"{chosen.command}\setlength{{\tabcolsep}}{{{_SEPARATED:g}pt}}",
            *([r"\addtocounter{table}{-1}"] if place else []),
            rf"\caption{{{heading}}}",
            *([] if place else [rf"\label{{tab:{table.name}}}"]),
            r"\smallskip",
            rf"\begin{{tabular}}{{@{{}}{layout}@{{}}}}",
            r"\toprule",
            *lines,
            r"\end{tabular}",
            *(rf"\par\smallskip\parbox{{0.95\textwidth}}{{\scriptsize\raggedright {text(note)}}}" for note in notes),
            r"\end{table*}",
            "",
        ]
    )


def _block(block: Block, columns: int, last: bool, chosen: _Print, width: float) -> list[str]:
    """The lines of a block in a table of a width in points; of one of words, which has none, it is 0."""
    lines, end = [], r" \\" if width else r" \tabularnewline"
    if block.title:
        fits = _width(block.title, chosen.points) < (width or _WIDTH)
        layout = "l" if fits else rf"p{{{width or 0.95 * _WIDTH:.0f}pt}}"
        lines.append(rf"\multicolumn{{{columns}}}{{@{{}}{layout}@{{}}}}{{\emph{{{text(block.title)}}}}}{end}")
    if block.groups:
        spans = [rf"\multicolumn{{{span}}}{{c}}{{{text(title)}}}" for title, span in block.groups]
        lines.append(" & ".join(["", *spans]) + end)
    if block.rows:
        empty = [""] * (columns - len(block.header))
        rows = [[[text(part) for part in _broken(title, place, chosen)] for place, title in enumerate(block.header)]]
        for row in block.rows:
            names = [text(part) for part in _broken(row[0].text, 0, chosen)]
            values = [names, *(_lines(cell, chosen) for cell in row[1:])]
            rows.append(values if width else [[_words(cell)] for cell in row])
        made = [[" & ".join([*line, *empty]) + end for line in zip_longest(*row, fillvalue="")] for row in rows]
        lines += [*made[0], rf"\cmidrule(r){{1-{len(block.header)}}}", *(line for row in made[1:] for line in row)]
    return [*lines, r"\bottomrule" if last else r"\midrule"]


def _lines(cell: Cell, chosen: _Print) -> list[str]:
    """A cell's value and what stands behind it, in one line or below each other."""
    value = rf"\textbf{{{text(cell.text)}}}" if cell.bold else text(cell.text)
    small = [rf"{{\scriptsize {text(part)}}}" for part in _parts(cell.small)]
    return [value, *small] if chosen.stacked else [" ".join([value, *small])]


def _words(cell: Cell) -> str:
    return rf"\raggedright {text(cell.text)}"


def _parts(small: str) -> list[str]:
    """Small print, divided where a parenthesis begins."""
    return re.split(r" (?=\()", small) if small else []


def _broken(words: str, place: int, chosen: _Print) -> list[str]:
    """A row's name or a column's title in lines, where rows have several."""
    if not chosen.stacked:
        return [words]
    together = words.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    return textwrap.wrap(together, _TITLE if place else _NAME) or [""]


def _width(plain: str, points: float) -> float:
    return points * sum(_WIDTHS.get(character, 0.5) for character in plain)


def _widths(block: Block, chosen: _Print) -> list[float]:
    """Of a block's columns, without the space between them."""
    titles = [[Cell(part) for part in _broken(title, place, chosen)] for place, title in enumerate(block.header)]
    names = [Cell(part) for row in block.rows for part in _broken(row[0].text, 0, chosen)]
    columns = [names, *([row[place] for row in block.rows] for place in range(1, len(block.header)))]
    return [max(map(chosen.width, [*title, *column])) for title, column in zip(titles, columns)]


def _natural(blocks: Sequence[Block], chosen: _Print) -> float:
    """The width of blocks below each other, each column as wide as in the widest of them."""
    columns = zip_longest(*(_widths(block, chosen) for block in blocks), fillvalue=0.0)
    return sum(max(column) + 2 * _SEPARATED for column in columns)


def _narrow(blocks: Sequence[Block], chosen: _Print) -> list[Block]:
    """The blocks, or if they are too wide, their columns in as many blocks as they need, each with the rows' names."""
    if _natural(blocks, chosen) <= _WIDTH or any(block.groups for block in blocks):
        return list(blocks)
    widths = [_widths(block, chosen) for block in blocks]
    widest = max(max(own[1:], default=0.0) for own in widths) + 2 * _SEPARATED
    most = max(int((_WIDTH - max(own[0] for own in widths)) / widest), 1)
    parts = []
    for block in blocks:
        columns = len(block.header) - 1
        size = -(-columns // -(-columns // most))  # about equally many in each
        for start in range(1, columns + 1, size):
            part = slice(start, start + size)
            rows = tuple((row[0], *row[part]) for row in block.rows)
            parts.append(Block(block.title if start == 1 else "", (block.header[0], *block.header[part]), rows))
    return parts


def _shares(blocks: list[Block]) -> list[float]:
    """The widths of columns of words as shares of the text's, wider where there is more to read."""
    columns = max(len(block.header) for block in blocks)
    rows = [row for block in blocks for row in block.rows if len(row) == columns]
    most = [max(_width(row[place].text, 9) for row in rows) if rows else 1.0 for place in range(columns)]
    root = [math.sqrt(width) for width in most]
    room = 1 - 2 * _SEPARATED * (columns - 1) / _WIDTH
    return [0.99 * room * width / sum(root) for width in root]


def _sheets(table: Table, blocks: list[Block], chosen: _Print, shares: list[float]) -> Iterator[list[Block]]:
    """The blocks of each page."""
    prose = math.ceil(_width(table.heading, 11.5) / _WIDTH) * 13.6
    notes = sum(math.ceil(_width(note, 8.5) / (0.9 * _WIDTH)) * 9.5 + 6 for note in table.notes)
    sheet: list[Block] = []
    used = prose + notes + 30
    for block in blocks:
        title = block.title
        lines = math.ceil(_width(title, chosen.points) / (0.95 * _WIDTH))
        above = chosen.line * (lines + (3.5 if chosen.stacked else 2.5))
        rows: list[tuple[Cell, ...]] = []
        used += above
        for row in block.rows:
            height = chosen.line * _height(row, chosen, shares)
            if used + height > _HEIGHT and (rows or sheet):
                yield [*sheet, replace(block, title=title, rows=tuple(rows))] if rows else sheet
                title = f"{block.title} (continued)" if rows and block.title else title
                sheet, rows, used = [], [], 50 + notes + above
            rows.append(row)
            used += height
        sheet.append(replace(block, title=title, rows=tuple(rows)))
    yield sheet


def _height(row: tuple[Cell, ...], chosen: _Print, shares: list[float]) -> int:
    """The lines of a row."""
    if shares:
        return max(math.ceil(_width(cell.text, 9.3) / (share * _WIDTH) * 1.2) for cell, share in zip(row, shares))
    if not chosen.stacked:
        return 1
    return max(len(_broken(row[0].text, 0, chosen)), *(1 + len(_parts(cell.small)) for cell in row))


def text(plain: str) -> str:
    """Escaped, with the paper's symbols as mathematics."""
    done, place = [], 0
    for found in _SYMBOL.finditer(plain):
        done += [_escaped(plain[place : found.start()]), _symbol(found[1])]
        place = found.end()
    return "".join([*done, _escaped(plain[place:])])


def _symbol(symbol: str) -> str:
    return {"n\u0302": r"$\hat n$", "P_L'": "$P_{L'}$", "P_L": "$P_L$"}.get(symbol, f"${symbol}$")


def _escaped(plain: str) -> str:
    parts, place = [], 0
    for found in _EXPONENT.finditer(plain):
        parts += [_characters(plain[place : found.start()]), f"$^{{{found[0].translate(_DIGITS)}}}$"]
        place = found.end()
    return "".join([*parts, _characters(plain[place:])])


def _characters(plain: str) -> str:
    made = "".join(_SPECIAL.get(character, character) for character in plain.replace("--", "\0"))
    return made.replace("\0", "-{}-")  # two hyphens, such as an option begins with, would become a dash
