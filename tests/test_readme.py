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
from records import ROOT
from tables.kit.markdown import anchor

FOLDERS = ("experiments", "models", "results")
PAGES = [*ROOT.glob("*.md"), *(file for top in FOLDERS for file in (ROOT / top).rglob("*.md"))]
# by the reader of CONTRIBUTING.md
ADDED = {"fig_cumulative", "table_copying", "experiments.copying"}


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
        file = (page.parent / unquote(target)).resolve() if target else page
        there = file.exists() and (not heading or unquote(heading) in headings(file))
        assert there or link.startswith("https://"), link


def commands():
    """What pages set as code: their blocks' lines, and the words between backticks."""
    for page in PAGES:
        if page.name == "CHANGELOG.md":  # which has the commands of its time
            continue
        for token in tokens(page):
            if token.type == "fence":
                yield from re.sub(r"\\\n *", "", token.content).splitlines()
            for child in token.children or ():
                if child.type == "code_inline":
                    yield child.content


def test_every_target_of_make_exists():
    words = set()
    for command in commands():
        if re.match(r"make [a-z]", command):
            words |= {*re.sub(r"\s#.*", "", command).split()[1:]}
    targets = sorted({word for word in words if re.fullmatch(r"[a-z][a-z0-9_-]*", word)} - ADDED)
    assert targets
    dry = ["make", "-n", "-o", "env", *targets]
    dry = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=False)
    assert dry.returncode == 0, dry.stderr
    for target in targets:
        kind, _, name = target.partition("_")
        if kind in ("table", "fig"):
            assert name in drawing.declared({"table": "tables", "fig": "figures"}[kind]), target


def test_every_module_and_option_exists(done):
    """A script's own help is the reference."""
    options = {}
    for command in commands():
        command = re.sub(r"^dprope (?=extend|disturbance)", "python -m experiments.", command)
        command = re.sub(r"^dprope (?=best)", "python -m experiments.beyond.", command)
        module = re.search(r"-m ((?:experiments|report|tables|figures)[\w.]*)(.*)", command)
        if module and "NAME" not in module[1]:
            words = module[2].partition(" #")[0]
            options.setdefault(module[1], set()).update(re.findall(r"(?<!\S)--[a-z-]+", words))
    assert len(options) > 10
    for module in sorted(options.keys() - ADDED):
        runs = (ROOT / module.replace(".", "/") / "__main__.py").is_file()
        text = done(f"{module}.__main__" if runs else module, "--help")
        assert options[module] - {"--start"} <= {*re.findall(r"--[a-z-]+", text)}, module
