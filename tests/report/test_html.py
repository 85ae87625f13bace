"""The HTML report: what the pages say, in one file that needs nothing else; in a browser its tables
sort."""

import html as entities
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from core.errors import InputError
from experiments.kit.records import RESULTS, ROOT
from report import html
from tests.analysis.recorder import Recorder, score

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)
# Sorts a column of signed numbers up and down and back, and says what it has seen in the page's
# title.
PROBE = """<script>
const problems = [];
addEventListener("error", (event) => problems.push(event.message));
addEventListener("load", () => {
  const column = (button) => [...button.closest("table").tBodies[0].rows].map(
    (row) => row.cells[button.parentElement.cellIndex].firstChild?.textContent.trim() ?? "");
  const signed = [...document.querySelectorAll("th button")].find(
    (button) => /^[+]/.test(column(button))
      && column(button).filter((text) => text[0] === "−").length > 1);
  const columns = [column(signed), ...[1, 2, 3].map(() => (signed.click(), column(signed)))];
  const drawn = document.querySelectorAll("td:has(svg circle)").length;
  const wide = document.scrollingElement.scrollWidth - innerWidth;
  const cut = [...document.querySelectorAll("th, td")].filter(
    (cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent);
  document.title = JSON.stringify({ problems, wide, cut, columns, drawn });
});</script>"""


class Reader(HTMLParser):
    """The tags of a page, whether they balance, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.open = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open += [tag] if tag not in ("meta", "br", "img", "hr", "li") else []

    def handle_endtag(self, tag):
        assert tag == "li" or self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, name):
        return [attrs[name] for _, attrs in self.tags if name in attrs]


@pytest.fixture(scope="module")
def committed():
    """The generated pages as they are committed; tests/report/test_pages.py compares them with what
    is rendered."""
    files = [ROOT / "README.md", *RESULTS.rglob("*.md"), *(ROOT / "experiments").rglob("*.md")]
    return {
        file: file.read_text() for file in files if file.read_text().startswith("<!-- written by")
    }


@pytest.fixture(scope="module")
def report(committed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "pages", lambda folder: committed)
        return html.build(RESULTS)


def test_the_report_has_every_table_image_and_heading_of_the_pages_and_needs_nothing_else(
    committed, report
):
    written = "\n".join(committed.values())
    reader = Reader(report)
    for tag, mark in (("table", r"^\| -"), ("img", r"!\["), ("h2", r"^## ")):
        assert (
            [name for name, _ in reader.tags].count(tag)
            >= len(re.findall(mark, written, re.MULTILINE))
            > 10
        )
    assert all(source.startswith("data:image/png;base64,") for source in reader.all("src"))
    ids = reader.all("id")
    links = reader.all("href")
    assert len(ids) == len(set(ids)) and {
        link[1:] for link in links if link.startswith("#")
    } <= set(ids)
    assert all(link.startswith(("#", "https://")) for link in links)


def test_links_between_pages_and_to_headings_of_one_name(tmp_path, monkeypatch):
    texts = {
        "1/README.md": "# One\n## The n̂ of it\n## The n̂ of it\n[b](../2/README.md#a-b-c) "
        "[top](../2/README.md)",
        "2/README.md": f"# Two\n## A b, `c`\n[back](../1/README.md#the-n̂-of-it-1) "
        f"[code]({ROOT}/core/x.py) [x](#a-b-c)",
    }
    monkeypatch.setattr(
        html, "pages", lambda folder: {folder / file: text for file, text in texts.items()}
    )
    reader = Reader(html.build(tmp_path))
    in_text = [attrs["href"][1:] for tag, attrs in reader.tags if tag == "a"][-4:]
    tags_of = {attrs["id"]: tag for tag, attrs in reader.tags if "id" in attrs}
    assert [tags_of[name] for name in in_text] == ["h2", "article", "h2", "h2"] and in_text[
        0
    ] == in_text[3]
    assert in_text[2].endswith("-1") and ("span", {"title": "core/x.py"}) in reader.tags
    private = tmp_path / "private.png"
    private.write_bytes(b"secret")
    for image in ("no.png", f"%2F{private}", "../private.png"):
        monkeypatch.setattr(
            html, "pages", lambda folder, image=image: {folder / "1/README.md": f"![plot]({image})"}
        )
        with pytest.raises(InputError, match="no image"):
            html.build(tmp_path)


def test_what_records_say_is_no_markup(tmp_path):
    title = "<script>alert('1')</script> & <b>"
    recorder = Recorder(tmp_path, title=title)
    recorder.add("perplexity_of_code", "my-<img src=x>", {"bits per byte": score(1)})
    recorder.add("![x](%2Fetc%2Fhostname)", "pi", {"share": score(1)})
    reader = Reader(html.build(recorder.results().folder))
    assert [tag for tag, _ in reader.tags if tag in ("script", "b", "img")] == [
        "script"
    ] and title in reader.text


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome here")
def test_in_a_browser_tables_sort_and_intervals_are_drawn(report, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(report.replace("<head>", f"<head>{PROBE}", 1))
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
    )
    # 500 pixels are the least that it takes: a telephone's.
    command = [BROWSER, *options, "--window-size=500,1000", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    seen = json.loads(entities.unescape(re.search(r"<title>(.*?)</title>", done.stdout)[1]))
    assert seen["problems"] == seen["cut"] == []
    assert seen["wide"] <= 0 and seen["drawn"] > 100
    original, up, down, again = seen["columns"]
    assert again == original and sorted(up) == sorted(original) == sorted(down)
    assert numbers(up) == sorted(numbers(original)) and numbers(down) == numbers(up)[::-1]


def numbers(texts):
    found = [re.match(r"[+−]?[\d.,]+", text) for text in texts]
    return [float(one[0].replace("−", "-").replace(",", "")) for one in found if one]
