"""The HTML report: what the pages say, in one file that needs nothing else; in a browser its tables
sort."""

import html as entities
import json
import re
import shutil
import subprocess

import pytest

from core.errors import InputError
from records import RESULTS, ROOT
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


def values(page, attribute):
    """Those of an attribute, in their order."""
    return [
        entities.unescape(quoted or bare)
        for quoted, bare in re.findall(rf' {attribute}=(?:"([^"]*)"|([\w-]+))', page)
    ]


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
    for tag, mark in (("table", r"^\| -"), ("img", r"!\["), ("h2", r"^## ")):
        marks = re.findall(mark, written, re.MULTILINE)
        assert len(re.findall(f"<{tag}[ >]", report)) >= len(marks) > 10
    assert all(source.startswith("data:image/png;base64,") for source in values(report, "src"))
    ids = values(report, "id")
    assert len(ids) == len(set(ids))
    links = values(report, "href")
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert all(link.startswith(("#", "https://")) for link in links)


def test_links_between_pages_and_to_headings_of_one_name(tmp_path, monkeypatch):
    texts = {
        tmp_path / "1/README.md": "# One\n## The n̂ of it\n## The n̂ of it\n"
        "[b](../2/README.md#a-b-c) [top](../2/README.md)",
        tmp_path / "2/README.md": "# Two\n## A b, `c`\n"
        f"[back](../1/README.md#the-n̂-of-it-1) [code]({ROOT}/core/x.py) [x](#a-b-c)",
    }
    monkeypatch.setattr(html, "pages", lambda folder: texts)
    page = html.build(tmp_path)
    *_, section, top, back, same_page = values(page, "href")
    assert section == same_page
    for link, tag in ((section, "h2"), (top, "article"), (back, "h2")):
        assert f'<{tag} id="{link[1:]}"' in page
    assert back.endswith("-1")
    assert '<span title="core/x.py">' in page


@pytest.mark.parametrize("image", ["no.png", "%2F{}", "../private.png"])
def test_a_page_holds_no_image_from_elsewhere(tmp_path, monkeypatch, image):
    private = tmp_path / "private.png"
    private.write_bytes(b"secret")
    text = f"# One\n![plot]({image.format(private)})"
    monkeypatch.setattr(html, "pages", lambda folder: {folder / "1/README.md": text})
    with pytest.raises(InputError, match="no image"):
        html.build(tmp_path)


def test_what_records_say_is_no_markup(tmp_path):
    title = "<script>alert('1')</script> & <b>"
    recorder = Recorder(tmp_path, title=title)
    recorder.add("perplexity_of_code", "my-<img src=x>", {"bits per byte": score(1)})
    recorder.add("![x](%2Fetc%2Fhostname)", "pi", {"share": score(1)})
    page = html.build(recorder.results().folder)
    assert re.findall(r"<(?:script|b|img)\b", page) == ["<script"]
    assert entities.escape(title, quote=False) in page


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
