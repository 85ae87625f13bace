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

_HERE = Path(__file__).parent


def build(folder: Path) -> str:
    """The pages of a folder of records as one file, with those that were written by hand beside
    them.

    Raises:
        InputError: an image that a page shows is not there.
    """
    written = {file.resolve(): text for file, text in pages(folder).items() if file.suffix == ".md"}
    if folder.resolve() == RESULTS:
        by_hand = [*RESULTS.rglob("*.md"), *(ROOT / "models").glob("*/README.md")]
        written |= {
            file: file.read_text(encoding="utf-8")
            for file in sorted(by_hand)
            if file not in written
        }
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
        headings = [
            (name, escape(words))
            for tag, words, name in _headings(tokens, names[file])
            if tag in ("h1", "h2")
        ]
        for token in tokens:
            _embed(token.children or (), file, names, top / "figures")
        body = parser.renderer.render(tokens, parser.options, {})
        articles.append({"name": names[file], "headings": headings, "body": body})
    frame, style, script = (
        (_HERE / name).read_text(encoding="utf-8")
        for name in ("frame.html", "style.css", "script.js")
    )
    template = jinja2.Template(frame, trim_blocks=True, keep_trailing_newline=True)
    return template.render(articles=articles, style=style, script=script)


def _headings(tokens: Sequence[Token], page: str) -> Iterator[tuple[str, str, str]]:
    """Each heading's tag, words and id, which it is given: the page's name, and GitHub's anchor
    within the page."""
    seen: Counter[str] = Counter()
    for token, inside in itertools.pairwise(tokens):
        if token.type == "heading_open":
            words = "".join(part.content for part in inside.children or ())
            slug = anchor(words)
            token.attrSet("id", f"{page}/{quote(slug)}" + (f"-{seen[slug]}" if seen[slug] else ""))
            seen[slug] += 1
            yield token.tag, words, str(token.attrs["id"])


def _embed(parts: Sequence[Token], file: Path, names: dict[Path, str], figures: Path) -> None:
    """Images are put into the file; links lead within it, to the network, or nowhere, if to another
    file."""
    closing = ""
    for part in parts:
        if part.type == "image":
            part.attrSet(
                "src",
                _data(
                    (file.parent / unquote(str(part.attrs["src"]))).resolve(), file.parent, figures
                ),
            )
        elif part.type == "link_close" and closing:
            part.tag = closing
            closing = ""
        elif part.type == "link_open" and "://" not in (href := unquote(str(part.attrs["href"]))):
            path, _, section = href.partition("#")
            target = (file.parent / path).resolve() if path else file
            if target in names:
                part.attrSet(
                    "href", "#" + names[target] + (f"/{quote(section)}" if section else "")
                )
            else:
                part.tag = closing = "span"
                part.attrs = {"title": os.path.relpath(target, ROOT)}


def _data(image: Path, *folders: Path) -> str:
    """A data: URL of its content; InputError if it is not in one of the folders."""
    if not image.is_file() or not {*folders} & {*image.parents}:
        raise InputError(
            f"no image {image} under {folders[-1]} or beside the page; make it with `make figures`."
        )
    kind = mimetypes.guess_type(image.name)[0]
    return f"data:{kind};base64,{base64.b64encode(image.read_bytes()).decode()}"


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report.html")
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()
    folder = arguments.results or RESULTS
    place = ROOT / "build" if folder.resolve() == RESULTS else root(folder)
    file = files.write(place / "report" / "index.html", build(folder))
    print(os.path.relpath(file))


if __name__ == "__main__":
    command_line.run(main)
