"""What the README and every other page point to is there: files, headings, targets of Make,
modules, options."""

import functools
import itertools
import re
import subprocess
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from analysis import drawing
from experiments.kit.records import ROOT
from report.pages import anchor

PAGES = [
    *ROOT.glob("*.md"),
    *(file for top in ("experiments", "models", "results") for file in (ROOT / top).rglob("*.md")),
]
SHOWN = [
    page for page in PAGES if page.name != "CHANGELOG.md"
]  # which has the commands of its time
ADDED = {
    "fig_cumulative",
    "table_copying",
    "experiments.copying",
}  # by the reader of CONTRIBUTING.md


@functools.cache
def tokens(page):
    return MarkdownIt("commonmark").enable("table").parse(page.read_text())


@functools.cache
def headings(page):
    inside = [after for at, after in itertools.pairwise(tokens(page)) if at.type == "heading_open"]
    return {anchor("".join(part.content for part in each.children)) for each in inside}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page):
    parts = [part for token in tokens(page) for part in token.children or ()]
    for link in filter(None, (part.attrGet("href") or part.attrGet("src") for part in parts)):
        target, _, heading = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        there = file.exists() and (not heading or unquote(heading) in headings(file))
        assert there or link.startswith("https://"), link


def commands():
    """What pages set as code: their blocks' lines, and the words between backticks."""
    for token in (token for page in SHOWN for token in tokens(page)):
        yield from (
            re.sub(r"\\\n *", "", token.content).splitlines()
            if token.type in ("fence", "code_block")
            else ()
        )
        yield from (child.content for child in token.children or () if child.type == "code_inline")


def test_every_target_of_make_exists():
    words = {
        word for command in commands() for word in re.findall(r"(?:table|fig)_[a-z0-9_]+", command)
    }
    for command in commands():
        words |= (
            set(re.sub(r"\s#.*", "", command).split()[1:])
            if re.match(r"make [a-z]", command)
            else set()
        )
    targets = sorted({word for word in words if re.fullmatch(r"[a-z][a-z0-9_-]*", word)} - ADDED)
    assert len(targets) > 30
    dry = subprocess.run(
        ["make", "-n", "-o", "env", *targets], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert dry.returncode == 0, dry.stderr
    for kind, name in (
        target.split("_", 1) for target in targets if target.startswith(("table_", "fig_"))
    ):
        listed = drawing.declared({"table": "tables", "fig": "figures"}[kind])
        assert name == "longbench" or name in listed, name


def test_every_module_and_option_exists(call):
    """A script's own help is the reference."""
    options = {}
    for command in commands():
        command = re.sub(r"^dprope (?=best|extend|disturbance)", "python -m experiments.", command)
        if found := re.search(
            r"-m ((?:experiments|tools|report|tables|figures)[\w.]*)(.*)", command
        ):
            options.setdefault(found[1], set()).update(
                re.findall(r"(?<!\S)--[a-z-]+", found[2].partition(" #")[0])
            )
    assert len(options) > 10
    for module in sorted(options.keys() - ADDED):
        if "NAME" not in module:
            runs = (ROOT / module.replace(".", "/") / "__main__.py").is_file()
            status, text, _ = call(f"{module}.__main__" if runs else module, "--help")
            assert status == 0 and options[module] - {"--start"} <= set(
                re.findall(r"--[a-z-]+", text)
            ), module
