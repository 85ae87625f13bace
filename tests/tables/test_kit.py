"""The back ends: whatever stands in a cell, a title or a name is text in each, and the same
text."""

import re
import shutil
import subprocess

import pytest
from markdown_it import MarkdownIt

from analysis.scores import Score
from records import ROOT
from tables.kit import latex, markdown
from tables.kit.table import NO_RECORD, NONE, Block, Cell, Table, score_block

HOSTILE = (
    r"\input{/etc/passwd}",
    "my_book_&_50%",
    "<script>alert(1)</script>",
    "a|b",
    "$x^2$ #1 ~ {y}",
    "*bold* [link](x) `code`",
    "n̂ = 28, s·k, L' → 10⁻³ “…” λ θ ρ ‖",
)


def hostile(*texts, **fields):
    rows = tuple((Cell(text), Cell(text, bold=True), Cell(text)) for text in texts)
    blocks = (Block(texts[0], ("Method", texts[-1], "x"), rows),)
    return Table("hostile", texts[0], blocks, **fields)


def cells(text):
    """The texts of the cells of each row of a page, and the kinds of all that it consists of."""
    rows = []
    kinds = set()
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        kinds |= {part.type.partition("_")[0] for part in (token, *(token.children or ()))}
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and token.level > 1:
            rows[-1].append("".join(part.content for part in token.children))
    return rows, kinds


def test_the_same_cells_on_a_page_on_a_terminal_and_in_latex():
    scores = {"x": Score(1.25, 1.0, 1.5), "Δ y": Score(2.0, -3.0, 7.0), "z": None}
    rows = [("one", scores), ("two", {"x": Score(0.5, 0.25, 0.75)})]
    table = Table("a", "A caption.", (score_block("A block", rows, digits=2),))
    expected = [
        ["Method", "x", "Δ y", "z"],
        ["One", "1.25 [1.00, 1.50]", "+2.00 [−3.00, 7.00]", NONE],
        ["Two", "0.50 [0.25, 0.75]", NO_RECORD, NO_RECORD],
    ]
    assert cells(markdown.render(table))[0] == expected
    terminal = markdown.render(table, escape=False).splitlines()
    lines = [line for line in terminal if line.startswith("| ")]
    assert len({*map(len, lines)}) == 1
    first = [cell.strip() for cell in lines[2].split("|")[1:-1]]
    assert first == ["One", "**1.25** [1.00, 1.50]", *expected[1][2:]]  # the best is bold
    written = latex.render(table)
    assert r"One & \withinterval{\textbf{1.25}}{[1.00, 1.50]} & \withinterval{+2.00}{" in written
    assert r"Two & \withinterval{0.50}{[0.25, 0.75]} & no record & no record \\" in written


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_text(text):
    table = hostile(text)
    rows, kinds = cells(markdown.render(table))
    assert not kinds & {"html", "link", "image", "code", "fence"}
    assert rows == [["Method", text, "x"], [text] * 3]
    assert "\\input" not in latex.render(table)
    assert not re.search(r"(?<!\\)[%#_&]", latex.text(text).replace("P_L", ""))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs a LaTeX installation")
def test_tables_compile_and_fit_a_page(tmp_path):
    """The committed ones, and some of hostile text and of many columns and rows."""
    numbers = Cell("12.3", "[10.0, 100.0] (12.3, 12.4, 12.5)")
    rows = tuple((Cell(f"A method, row {row} (n̂ = 28)"), *[numbers] * 14) for row in range(70))
    block = Block("A block", ("Method", *map(str, range(14))), rows)
    tables = [*map(hostile, HOSTILE), hostile(*HOSTILE, words=True), Table("wide", "", (block,))]
    texts = [latex.render(table) for table in tables]
    texts += [file.read_text() for file in sorted((ROOT / "tables").rglob("*.tex"))]
    document = (
        r"\documentclass[11pt]{article}\usepackage[a4paper,margin=2.5cm]{geometry}"
        r"\usepackage[utf8]{inputenc}\usepackage{booktabs,graphicx}\begin{document}"
        + r"\clearpage".join(texts)
        + r"\end{document}"
    )
    (tmp_path / "all.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    too_wide = [float(points) for points in re.findall(r"Overfull \\hbox \((.*?)pt", done.stdout)]
    assert all(points <= 1 for points in too_wide)
    assert "Float too large" not in done.stdout


def test_the_papers_symbols_are_mathematics_where_they_stand_alone():
    assert latex.text("n̂ = 28 at s, L' and k") == r"$\hat n$ = 28 at $s$, $L'$ and $k$"
    assert latex.text("16k tokens, Student's, 2L+") == r"16k tokens, Student's, 2$L$+"
    assert latex.text("commit 000a01d, --max-length") == r"commit 000a01d, -{}-max-length"
