"""The report in a real browser, at the widths of a laptop and of a phone."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from experiments.kit.records import RESULTS
from report import page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
WIDTHS = (1280, 390)
PROBE = (Path(__file__).parent / "probe.js").read_text(encoding="utf-8")
# A window cannot be as narrow as a phone; a frame can.
FRAMES = """<!doctype html><meta charset=utf-8><body><pre id=found></pre><script>
const found = [];
addEventListener("message", (event) => {
  found.push(event.data);
  document.getElementById("found").textContent = JSON.stringify(found);
});
</script>"""


pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome here")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """By width, what the probe saw."""
    folder = tmp_path_factory.mktemp("browser")
    (folder / "page.html").write_text(page.build(RESULTS).replace("<head>", f"<head><script>{PROBE}</script>", 1))
    frames = "".join(
        f"<iframe src=page.html style='width:{width}px;height:900px;border:0'></iframe>" for width in WIDTHS
    )
    (folder / "frames.html").write_text(FRAMES + frames)
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
    options += ("--disable-component-update", "--disable-sync", f"--user-data-dir={folder / 'profile'}")
    done = subprocess.run(
        [BROWSER, *options, "--window-size=1400,1000", "--virtual-time-budget=20000", "--dump-dom",
         (folder / "frames.html").as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    (text,) = re.findall(r"<pre id=\"found\">(.*?)</pre>", done.stdout, re.DOTALL)
    return {one["width"]: one for one in json.loads(html.unescape(text))}


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_fails_and_nothing_sticks_out(found, width):
    seen = found[width]
    assert seen["problems"] == []
    assert max(seen["beyond"]) <= 0, "the page scrolls sideways"
    assert seen["images"] > 0 == seen["broken"]
    assert seen["reached"], "a box scrolls that the keyboard does not reach"


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_opens_and_shows_its_figures(found, width):
    seen = found[width]
    assert seen["closed"] == ["false", 0] and seen["focused"]
    assert seen["opened"][0] == "true" and seen["opened"][1] > 100 and seen["shown"] > 0
    assert seen["revealed"], "a link leads to a table that stays closed"


@pytest.mark.parametrize("width", WIDTHS)
def test_columns_sort_as_numbers_and_back(found, width):
    seen = found[width]
    (_, original), (first, up), (second, down), (third, again) = seen["columns"]
    assert (first, second, third) == ("ascending", "descending", "none") and again == original
    numbers = [number(text) for text in up if number(text) is not None]
    assert len(numbers) > 2 and numbers == sorted(numbers)
    assert [number(text) for text in down if number(text) is not None] == sorted(numbers, reverse=True)
    assert sorted(up) == sorted(down) == sorted(original)
    assert seen["ranks"] == sorted(seen["ranks"]) and seen["pairs"] and seen["back"]


def number(text):
    start = re.match(r"[+−-]?[\d.,]+", text)
    return float(start[0].replace("−", "-").replace(",", "")) if start else None
