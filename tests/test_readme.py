"""What the README and every other page point to is there."""

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from experiments.kit.records import ROOT

PAGES = [
    *ROOT.glob("*.md"),
    *(file for top in ("experiments", "models", "results") for file in (ROOT / top).rglob("*.md")),
]


def parsed(file):
    """The links of a page, and the anchors of its headings."""
    links, anchors = [], []
    tokens = MarkdownIt("commonmark").enable("table").parse(file.read_text())
    for before, token in zip([None, *tokens], tokens):
        for child in token.children or ():
            links += [child.attrGet("href") or child.attrGet("src")] if child.type in ("link_open", "image") else []
        if before and before.type == "heading_open":
            # GitHub keeps letters, combining marks, digits, hyphens and underscores.
            said = "".join(child.content for child in token.children if child.type in ("text", "code_inline"))
            anchors.append(
                "".join(sign for sign in said.lower() if sign.isalnum() or sign in " -_\u0302").replace(" ", "-")
            )
    return links, anchors


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page):
    for link in parsed(page)[0]:
        if link.startswith("https://"):
            continue
        target, _, heading = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page} links to {link}"
        if heading:
            assert unquote(heading) in parsed(file)[1], f"{page} links to {link}"


SHOWING_COMMANDS = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which has those of its time
# What CONTRIBUTING.md has the reader add.
EXAMPLES = {"fig_cumulative", "table_copying", "copying", "mine", "linear-ramp"}


def commands(page):
    """What a page sets as code: its blocks' lines, and the words between backticks."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        yield from token.content.splitlines() if token.type in ("fence", "code_block") else ()
        yield from (child.content for child in token.children or () if child.type == "code_inline")


def test_every_target_of_make_that_is_named_exists():
    named = {}
    for page in SHOWING_COMMANDS:
        for command in commands(page):
            words = re.match(r"make((?: [a-z][a-z0-9_-]*)+)", command)
            targets = words[1].split() if words else [command]
            named |= {target: page for target in targets if words or re.fullmatch("(table|fig)_[a-z0-9_]+", target)}
    assert len(named) > 30
    wanted = sorted(named.keys() - EXAMPLES)
    known = subprocess.run(["make", "-n", "-o", "env", *wanted], cwd=ROOT, capture_output=True, text=True, check=False)
    assert known.returncode == 0, known.stderr
    for target in wanted:
        kind, _, rest = target.partition("_")
        folder = {"table": "tables", "fig": "figures"}.get(kind)
        there = [ROOT / folder / place / f"{rest}.py" for place in ("", "beyond")] if folder else []
        assert target == "table_longbench" or not there or any(map(Path.is_file, there)), f"{named[target]}: {target}"


def test_every_module_that_is_run_exists():
    run = {}
    for page in SHOWING_COMMANDS:
        run |= {name: page for command in commands(page) for name in re.findall(r"-m ([a-z_][\w.]*)", command)}
    ours = {name for name in run if (ROOT / name.partition(".")[0]).is_dir() and "NAME" not in name} - {"eval"}
    assert len(ours) > 10
    for name in ours - {"experiments.copying"}:
        file = ROOT / name.replace(".", "/")
        assert file.with_suffix(".py").is_file() or (file / "__main__.py").is_file(), f"{run[name]}: {name}"


def test_every_option_that_is_named_exists(call):
    """Of commands on one line; a script's own help is the reference."""
    told = {}
    for page in SHOWING_COMMANDS:
        for command in commands(page):
            found = re.search(r"-m (experiments\.[a-z_.]+) (.*?)(#|\\?$)", command)
            if found and "copying" not in found[1]:
                told.setdefault(found[1], set()).update(re.findall(r"(?<!\S)--[a-z-]+", found[2]))
    for module, options in told.items():
        status, text, _ = call(module, "--help")
        assert status == 0 and options - {"--start"} <= set(re.findall(r"--[a-z-]+", text)), module
