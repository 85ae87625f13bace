"""Every page that `python -m report.pages` writes, as one HTML file.

    python -m report.html

writes build/report/index.html, which holds its figures and needs nothing else to be read: a link
between pages leads within the file. The report on records of another folder is report/index.html
beside that folder.
"""

import base64
import itertools
import mimetypes
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote, unquote

import jinja2
from markdown_it import MarkdownIt
from markdown_it.token import Token

from analysis.results import root
from core import files
from core.errors import InputError
from experiments.kit import command_line
from records import RESULTS, ROOT
from report.pages import pages
from tables.kit.markdown import anchor


def build(folder: Path) -> str:
    """The pages of a folder of records as one file, with those that were written by hand beside
    them.

    Raises:
        InputError: an image that a page shows is not there.
    """
    written = {file: text for file, text in pages(folder).items() if file.suffix == ".md"}
    if folder.resolve() == RESULTS:
        by_hand = [*RESULTS.rglob("*.md"), *(ROOT / "models").glob("*/README.md")]
        for file in sorted(by_hand):
            written.setdefault(file, file.read_text(encoding="utf-8"))
    top = folder.resolve().parent
    names = {file: quote(file.relative_to(top).with_suffix("").as_posix()) for file in written}
    order = sorted(written, key=lambda file: (file != ROOT / "README.md", file.name != "claims.md"))
    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
    parser.add_render_rule("table_open", lambda *_: "<div class=scroll><table>")
    parser.add_render_rule("table_close", lambda *_: "</table></div>")
    articles = []
    for file in order:
        without_its_source = re.sub(r"\A<!--.*?-->\n", "", written[file])
        tokens = parser.parse(without_its_source)
        headings = list(_headings(tokens, names[file]))
        for token in tokens:
            _embed(token.children or (), file, names, top / "figures")
        body = parser.renderer.render(tokens, parser.options, {})
        articles.append({"name": names[file], "headings": headings, "body": body})
    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return engine.get_template("frame.html").render(articles=articles)


def _headings(tokens: Sequence[Token], page: str) -> Iterator[tuple[str, str]]:
    """The id and the words of each heading of the contents; every heading is given its id, the
    page's name and GitHub's anchor within the page."""
    seen: Counter[str] = Counter()
    for token, inside in itertools.pairwise(tokens):
        if token.type == "heading_open":
            words = "".join(part.content for part in inside.children or ())
            slug = anchor(words)
            place = f"{page}/{quote(slug)}" + (f"-{seen[slug]}" if seen[slug] else "")
            token.attrSet("id", place)
            seen[slug] += 1
            if token.tag in ("h1", "h2"):
                yield place, escape(words)


def _embed(parts: Sequence[Token], file: Path, names: dict[Path, str], figures: Path) -> None:
    """Images are put into the file; links lead within it, to the network, or nowhere, if to another
    file."""
    closing = ""
    for part in parts:
        if part.type == "image":
            image = (file.parent / unquote(str(part.attrs["src"]))).resolve()
            part.attrSet("src", _data(image, file.parent, figures))
        elif part.type == "link_close" and closing:
            part.tag = closing
            closing = ""
        elif part.type == "link_open" and "://" not in (href := unquote(str(part.attrs["href"]))):
            path, _, section = href.partition("#")
            target = (file.parent / path).resolve() if path else file
            if target in names:
                within = f"/{quote(section)}" if section else ""
                part.attrSet("href", f"#{names[target]}{within}")
            else:
                part.tag = closing = "span"
                part.attrs = {"title": os.path.relpath(target, ROOT)}


def _data(image: Path, page: Path, figures: Path) -> str:
    """A data: URL of its content; InputError if it is in neither of the two folders."""
    if not image.is_file() or not {page, figures} & {*image.parents}:
        raise InputError(
            f"no image {image} under {figures} or beside the page; make it with `make figures`."
        )
    kind = mimetypes.guess_type(image.name)[0]
    return f"data:{kind};base64,{base64.b64encode(image.read_bytes()).decode()}"


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report.html")
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()
    folder = arguments.results or RESULTS
    place = ROOT / "build" if folder.resolve() == RESULTS else root(folder)
    print(os.path.relpath(files.write(place / "report" / "index.html", build(folder))))


if __name__ == "__main__":
    command_line.run(main)
