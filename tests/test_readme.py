"""The README is short, its three lines do what they say, and what it and every other page point to is there."""

import re
import subprocess
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from transformers import AutoModelForCausalLM, AutoTokenizer

from experiments.kit.records import ROOT
from tests.models import checkpoint

README = (ROOT / "README.md").read_text()
PAGES = [
    *ROOT.glob("*.md"),
    *(file for top in ("experiments", "models", "results") for file in (ROOT / top).rglob("*.md")),
]


def test_the_three_lines_extend_and_export_a_model(tmp_path, monkeypatch):
    checkpoint(tmp_path / "model")
    (lines,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(lines.splitlines()) == 3
    monkeypatch.chdir(tmp_path)
    exec(lines.replace("Qwen/Qwen2.5-0.5B", str(tmp_path / "model")), {})  # the README is ours
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "qwen-extended")
    assert loaded.config.max_position_embeddings == 256
    assert AutoTokenizer.from_pretrained(tmp_path / "qwen-extended").model_max_length == 256


def test_a_stranger_reads_it_in_a_minute():
    assert len(README.splitlines()) <= 130


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


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "experiments/README.md"])
def test_every_command_of_make_that_is_named_exists(name):
    text = (ROOT / name).read_text()
    named = re.findall(
        r"\bmake((?: [a-z][a-z0-9_-]*)+)", " ".join(re.findall(r"`[^`]+`|^make .*$", text, re.MULTILINE))
    )
    targets = {target for words in named for target in words.split()}
    targets |= set(re.findall(r"`((?:table|fig)_[a-z0-9_]+)`", text))
    examples = {"fig_cumulative", "table_copying"}  # what CONTRIBUTING.md has the reader add
    assert len(targets) > 5
    for target in targets - examples:
        known = subprocess.run(
            ["make", "-n", "-o", "env", target], cwd=ROOT, capture_output=True, text=True, check=False
        )
        kind, _, rest = target.partition("_")
        folder = {"table": "tables", "fig": "figures"}.get(kind)
        assert known.returncode == 0, f"{name} names make {target}"
        if folder and target != "table_longbench":
            assert (ROOT / folder / f"{rest}.py").is_file(), f"{name} names make {target}"
