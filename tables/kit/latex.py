"""A table as LaTeX, with booktabs."""

from __future__ import annotations

import re

from tables.kit.table import Block, Cell, Table

_WIDE = 6  # columns from which print is smaller
_FULL, _OVERFULL = 104, 120  # characters of a line from which it is smaller yet, and from which intervals stand below
_LONG = 100  # characters of a title from which it is broken into lines
_WORDS, _REMARK = r"p{0.19\textwidth}", r"p{0.31\textwidth}"  # a column of words, and the last one
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
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


def render(table: Table) -> str:
    """A floating table; notes below it in small print."""
    columns, characters = table.width, _characters_of(table)
    small = r"{value} {{\scriptsize {small}}}"
    size = r"\footnotesize\setlength{\tabcolsep}{2pt}" if columns >= _WIDE else r"\small\setlength{\tabcolsep}{3pt}"
    if not table.words and characters > _OVERFULL:
        small = r"\begin{{tabular}}[t]{{@{{}}r@{{}}}}{value}\\{{\tiny {small}}}\end{{tabular}}"
    elif not table.words and characters > _FULL:
        size, small = r"\scriptsize\setlength{\tabcolsep}{1.2pt}", r"{value} {{\tiny {small}}}"
    lines = [line for block in table.blocks for line in _block(block, columns, block is table.blocks[-1], small)]
    layout = _WORDS * (columns - 1) + _REMARK if table.words else "l" + "r" * (columns - 1)
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering",
            size,
            rf"\caption{{{text(table.heading)}}}",
            rf"\label{{tab:{table.name}}}",
            r"\smallskip",
            rf"\begin{{tabular}}{{{layout}}}",
            r"\toprule",
            *lines,
            r"\end{tabular}",
            *(rf"\par\smallskip\parbox{{0.95\textwidth}}{{\scriptsize {text(note)}}}" for note in table.notes),
            r"\end{table*}",
            "",
        ]
    )


def _characters_of(table: Table) -> float:
    """Those of a line, each column as wide as its widest cell; small print takes less."""
    wide = [0.0] * table.width
    for block in table.blocks:
        for row in [[Cell(title) for title in block.header], *block.rows]:
            for place, cell in enumerate(row):
                wide[place] = max(wide[place], len(cell.text) + 0.8 * len(cell.small))
    return sum(wide)


def _block(block: Block, columns: int, last: bool, small: str) -> list[str]:
    lines = []
    if block.title:
        layout = r"p{0.9\textwidth}" if len(block.title) > _LONG else "l"
        lines.append(rf"\multicolumn{{{columns}}}{{{layout}}}{{\emph{{{text(block.title)}}}}} \\")
    if block.groups:
        spans = [rf"\multicolumn{{{span}}}{{c}}{{{text(title)}}}" for title, span in block.groups]
        lines.append(" & ".join(["", *spans]) + r" \\")
    if block.rows:
        empty = [""] * (columns - len(block.header))
        lines.append(" & ".join([*map(text, block.header), *empty]) + r" \\")
        lines.append(rf"\cmidrule(r){{1-{len(block.header)}}}")
        lines += [" & ".join([*(_cell(cell, small) for cell in row), *empty]) + r" \\" for row in block.rows]
    return [*lines, r"\bottomrule" if last else r"\midrule"]


def _cell(cell: Cell, small: str) -> str:
    value = rf"\textbf{{{text(cell.text)}}}" if cell.bold else text(cell.text)
    return small.format(value=value, small=text(cell.small)) if cell.small else value


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
