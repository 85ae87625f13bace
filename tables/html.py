"""A LaTeX table of this repository as HTML, for the report: the same cells, no second source of numbers."""

from __future__ import annotations

import html
import re

_SYMBOLS = {
    r"\hat n": "n̂", r"\hat{n}": "n̂", r"\mathcal D": "D", r"\Delta": "Δ", r"\times": "×", r"\epsilon": "ε", r"\theta": "θ",
    r"\lambda": "λ", r"\ldots": "…", r"\le": "≤", r"\ge": "≥", r"\|": "‖", r"\,": " ", r"\%": "%", r"\_": "_", r"\&": "&", r"\ ": " ",
    "$-$": "−", "~": " ", "--": "–", "^{-3}": "⁻³", "^{-7}": "⁻⁷", "^{-8}": "⁻⁸",
}  # fmt: skip
_COMMAND = re.compile(r"\\(textbf|emph|texttt|textit)\{|\{\\scriptsize ?|\{")
_TAGS = {"textbf": "b", "emph": "i", "textit": "i", "texttt": "code"}


def tables(tex: str) -> str:
    """Every table of a .tex file."""
    return "".join(map(table, re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", tex, re.DOTALL)))


def table(tex: str) -> str:
    """The caption and the rows of one table."""
    caption = text(_argument(tex, tex.index(r"\caption{") + len(r"\caption{"))[0])
    body = tex[tex.index(r"\toprule") : tex.index(r"\bottomrule")]
    rows, head = [], r"\midrule" in body
    for line in re.split(r"\\\\\s*\n", body):
        rules = re.findall(r"\\(toprule|midrule|cmidrule)", line)
        cells = re.sub(r"\\(toprule|midrule)|\\cmidrule(\([lr]+\))?\{[^}]*\}", "", line).strip()
        if "midrule" in rules:
            head = False
        if cells:
            rows.append(f"<tr{' class=rule' if rules else ''}>{_cells(cells, 'th' if head else 'td')}</tr>")
    kind = " class=words" if "p{" in tex[: tex.index(r"\toprule")] else ""  # columns of text rather than of numbers
    return f"<table{kind}><caption>{caption}</caption>{''.join(rows)}</table>"


def _cells(line: str, tag: str) -> str:
    made = []
    for cell in re.split(r"(?<!\\)&", line):
        cell = cell.strip()
        span = re.match(r"\\multicolumn\{(\d+)\}\{[^}]*\}\{", cell)
        if span:
            inner, _ = _argument(cell, span.end())
            made.append(f"<{tag} colspan={span[1]}>{text(inner)}</{tag}>")
        else:
            made.append(f"<{tag}>{text(cell)}</{tag}>")
    return "".join(made)


def text(tex: str) -> str:
    """A cell or caption: bold, emphasis and small print as tags, mathematics as plain symbols."""
    done, place = [], 0
    while found := _COMMAND.search(tex, place):
        done.append(_plain(tex[place : found.start()]))
        inner, place = _argument(tex, found.end())
        tag = _TAGS.get(found[1]) or ("small" if "scriptsize" in found[0] else None)
        done.append(f"<{tag}>{text(inner)}</{tag}>" if tag else text(inner))
    return "".join(done) + _plain(tex[place:])


def _plain(tex: str) -> str:
    for symbol, character in _SYMBOLS.items():
        tex = tex.replace(symbol, character)
    return html.escape(tex.replace("$", ""), quote=False)


def _argument(tex: str, start: int) -> tuple[str, int]:
    """What stands before the brace that closes one opened before `start`, and where it goes on behind it."""
    depth = 1
    for place in range(start, len(tex)):
        if tex[place - 1] != "\\":
            depth += {"{": 1, "}": -1}.get(tex[place], 0)
        if depth == 0:
            return tex[start:place], place + 1
    raise ValueError(f"unbalanced braces in {tex!r}")
