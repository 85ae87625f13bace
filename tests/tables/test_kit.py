"""The back ends: whatever stands in a cell, a title or a name is text in each, and the same text."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from analysis.comparison import LeftOut
from analysis.numbers import number, spread
from analysis.scores import Score
from tables.kit import latex, markdown, plain
from tables.kit.table import NO_RECORD, NONE, Block, Cell, Table, noted, probability, score_block

HOSTILE = (
    r"\input{/etc/passwd}",
    "my_book_&_50%",
    "<script>alert(1)</script>",
    "a|b",
    "$x^2$ #1 ~ {y}",
    "*bold* [link](x) `code`",
    "n̂ = 28, s·k, L' → 10⁻³ “…” λ θ ρ ‖",
)


def table(*texts, **more):
    rows = tuple((Cell(text), Cell(text, f"[{text}]", bold=True), Cell(text)) for text in texts)
    blocks = (Block(texts[0], ("Method", texts[-1], "x"), rows),)
    return Table("hostile", texts[0], blocks, notes=(texts[0],), **more)


class Cells(HTMLParser):
    """The texts of a page's cells and headings, and the tags that it has."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.inside = [], set(), False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside &= tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def html(text):
    """Markdown as a browser gets it."""
    return MarkdownIt("commonmark").enable("table").render(text)


def in_latex(text):
    """The cells of a table's rows, their markup taken away."""
    rows = [line.removesuffix(r" \tabularnewline") for line in text.splitlines() if "&" in line]
    cells = [[cell.replace("$-$", "−").replace("--", "–") for cell in row.split(" & ")] for row in rows]
    bare = [[re.sub(r"\\textbf\{(.*?)\}", r"\1", cell) for cell in row] for row in cells]
    return [[re.sub(r"\\withinterval\{(.*?)\}\{(.*)\}", r"\1 \2", cell) for cell in row] for row in bare]


def test_the_same_cells_in_all_three():
    scores = {"x": Score(1.25, 1.0, 1.5), "y": Score(-2.0, -3.0, -1.0), "z": None}
    block = score_block("A block", [("one", scores), ("two", {"x": Score(0.5, 0.25, 0.75)})], digits=2, signed=["y"])
    made = Table("a", "A caption.", (block,))
    expected = [
        ["Method", "x", "y", "z"],
        ["One", "1.25 [1.00, 1.50]", "−2.00 [−3.00, −1.00]", NONE],
        ["Two", "0.50 [0.25, 0.75]", NO_RECORD, NO_RECORD],
    ]
    assert Cells(html(markdown.render(made))).rows == expected
    lines = [line for line in markdown.render(made).splitlines() if line.startswith("| ") and "---" not in line]
    assert [[cell.strip().replace("**", "") for cell in line.strip("|").split("|")] for line in lines] == expected
    assert in_latex(latex.render(made)) == expected
    aligned = plain.render(made).splitlines()[3:6]
    assert [re.split(" {2,}", line.replace("*", "")) for line in aligned] == expected
    assert len(set(map(len, aligned))) == 1
    bold = [cell.bold for row in block.rows for cell in row]
    assert bold == [False, True, True, False, False, False, False, False]  # the best of each column
    assert latex.render(made).count("textbf") == markdown.render(made).count("**") / 2 == 2


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_says_it_and_marks_nothing_up_as_html(text):
    made = table(text)
    plain = tuple(replace(cell, small="") for cell in made.blocks[0].rows[0])  # small print is ours: intervals, counts
    page = Cells(html(markdown.render(replace(made, blocks=(replace(made.blocks[0], rows=(plain,)),)))))
    assert page.tags <= {"table", "thead", "tbody", "tr", "th", "td", "strong", "em", "p"}
    assert page.rows == [["Method", text, "x"], [text] * 3]


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_has_no_command_but_its_own(text):
    made = latex.render(table(text))
    commands = set(re.findall(r"\\([a-zA-Z]+)", latex.text(text)))
    assert not commands & {"input", "etc"} and "\\input" not in made
    for line in made.splitlines():
        if line.endswith(r"\tabularnewline") and "rlap" not in line:
            assert len(re.findall(r"(?<!\\)&", line)) == 2
    assert not re.search(r"(?<!\\)[%#_]", latex.text(text).replace("P_L", ""))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs a LaTeX installation")
def test_hostile_text_compiles(tmp_path):
    compiled(tmp_path, [latex.render(table(text)) for text in HOSTILE] + [latex.render(table(*HOSTILE, words=True))])


def compiled(folder, texts):
    """What pdflatex says of tables as the README has them included."""
    document = (
        r"\documentclass[11pt]{article}\usepackage[a4paper,margin=2.5cm]{geometry}"
        r"\usepackage[utf8]{inputenc}\usepackage{booktabs,graphicx}\begin{document}"
        + "\n".join(text + r"\clearpage" for text in texts)
        + r"\end{document}"
    )
    (folder / "all.tex").write_text(document)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def test_the_papers_symbols_are_mathematics_where_they_stand_alone():
    assert latex.text("n̂ = 28 at s, L' and k") == r"$\hat n$ = 28 at $s$, $L'$ and $k$"
    assert latex.text("16k tokens, Student's, 2L+") == r"16k tokens, Student's, 2$L$+"
    assert latex.text("commit 000a01d, --max-length") == r"commit 000a01d, -{}-max-length"


def test_numbers_of_every_kind():
    assert number(-0.5, 1) == "−0.5" and number(2, 1, sign=True) == "+2.0"
    assert [probability(p) for p in (1, 0.125, 0.005, 0.004, 3.05e-5)] == ["1.00", "0.12", "0.01", "4·10⁻³", "3·10⁻⁵"]


def test_prose_says_what_an_interval_is_over_and_each_of_few_texts():
    few = Score(0.042, n=3, texts=(0.032, 0.055, 0.039))
    assert spread(few, 3, sign=True) == "(texts: +0.032, +0.055, +0.039)"
    assert spread(replace(few, low=0.01, high=0.07), 2) == "[0.01, 0.07] over seeds (texts: 0.03, 0.06, 0.04)"
    assert spread(Score(2.0, n=1, texts=(2.0,)), 2) == "(one text)" and not spread(Score(2.0), 2)
    assert spread(Score(2.0, 1.0, 3.0, 8, tuple(range(8))), 1) == "[1.0, 3.0]"


def test_what_is_left_out_is_named_once_with_its_reason():
    records = [LeftOut("ruler", name, "samples 1") for name in ("a", "b", "a")] + [LeftOut("ruler", "c", "dtype x")]
    (note,) = noted(table("x"), records).notes[1:]
    assert note.count("samples 1") == note.count("dtype x") == 1 and re.search(r"\ba, b\b", note)
    assert noted(table("x"), []) == table("x")


def wide(columns, rows=1, small="[10.0, 100.0] (12.3, 12.4, 12.5)"):
    """A table of rows with numbers that are all different."""
    cells = [[Cell(f"{row * columns + place}.0", small) for place in range(columns)] for row in range(rows)]
    made = tuple((Cell(f"A method, row {row} (n̂ = 28)"), *own) for row, own in enumerate(cells))
    return Table("wide", "Wide. " * 40, (Block("A block", ("Method", *map(str, range(columns))), made),))


def test_a_high_table_goes_on_on_further_pages_under_the_same_number():
    made = latex.render(wide(5, rows=60))
    pages = made.split(r"\begin{table*}")[1:]
    assert len(pages) > 1 and made.count(r"\label") == 1
    assert [page.count(r"\addtocounter{table}{-1}") for page in pages] == [0] + [1] * (len(pages) - 1)
    assert [made.count(f"row {row} ") for row in range(60)] == [1] * 60 and all("Method &" in page for page in pages)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs a LaTeX installation")
def test_tables_of_every_size_fit_an_a4_page(tmp_path):
    sizes = [wide(columns, rows) for columns, rows in ((2, 3), (5, 60), (9, 20), (14, 40))]
    words = tuple(tuple(Cell("several_words of prose " * times) for times in (1, 4, 2, 9)) for _ in range(40))
    prose = Table("prose", "Words.", (Block("", ("a", "b", "c", "d"), words),), words=True)
    fits(compiled(tmp_path, map(latex.render, [*sizes, prose])))


def fits(said):
    """Nothing that pdflatex says is too wide by more than a point, or too high."""
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \((.*?)pt", said)]
    assert all(points <= 1 for points in wide) and "Float too large" not in said, (wide, said[-3000:])


def test_a_block_with_fewer_columns_has_each_below_its_namesake():
    full, fewer = ({name: Score(1.0, 0.5, 1.5) for name in names} for names in (("x", "y", "Avg."), ("y", "Avg.")))
    made = Table("x", "", (score_block("one", [("m", full)]), score_block("two", [("n", fewer)])))
    lines = [line for line in plain.render(made).splitlines() if line.startswith("Method")]
    assert len(lines) == 2 and lines[0] == lines[1]
    assert [row[1] for row in Cells(html(markdown.render(made))).rows] == ["x", "1.0 [0.5, 1.5]", "x", NONE]
    assert [row for row in in_latex(latex.render(made)) if row[0] == "Method"] == [["Method", "x", "y", "Avg."]] * 2


@pytest.mark.parametrize(("paper", "start"), (("Table 1", "The paper's Table 1: What"), ("", "Beyond the paper. What")))
def test_a_caption_numbers_no_table_of_its_own(paper, start):
    made = Table("x", "What it shows.", (score_block("", [("a", {"x": Score(1.0, 0.5, 1.5)})]),), paper)
    assert rf"\caption{{{start}" in latex.render(made) and plain.render(made).startswith(start)
