"""The HTML report is one page that needs nothing else, well formed, with everything that it inserts escaped."""

import importlib
import re
from html.parser import HTMLParser

import pytest

from analysis import results
from experiments.lab.records import RESULTS, ROOT
from report import page
from report.claims import CLAIMS
from tables.kit import command, html
from tests.report.conftest import score

VOID = {"meta", "br", "img"}


class Reader(HTMLParser):
    """Follows the tags, and collects text and what is loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.tags, self.loaded, self.unbalanced = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.loaded += [value for name, value in attributes if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def read(text):
    reader = Reader()
    reader.feed(text)
    assert not reader.unbalanced and not reader.open
    return reader


@pytest.fixture(scope="module")
def whole():
    return page.build(RESULTS)


def test_the_page_is_well_formed_and_needs_nothing_else(whole):
    reader = read(whole)
    assert all(value.startswith("data:") for value in reader.loaded)
    assert reader.tags.count("figure") == len(list((ROOT / "figures").glob("*/*.png")))
    text = "".join(reader.text)
    assert all(claim.text in text for claim in CLAIMS)


def test_every_table_of_every_scale_is_on_it(whole):
    for measured in results.every():
        for name in command.names():
            try:
                made = html.render(command.build(name, measured))
            except results.NotMeasured:
                continue
            assert made in whole


HOSTILE = "<script>alert('1')</script> & \"two\""


def test_what_records_say_is_escaped(folder):
    folder.scale("hostile", title=HOSTILE)
    for method in ("yarn", "dprope", f"my-{HOSTILE}"):
        folder.ruler(method, {8192: 40, 16384: 40}, scale="hostile", data={HOSTILE: "1"})
        heads = {"heads": [{}], "own": score(19, 1), "scaled": score(29, 1)}
        folder.save("previous_token", "hostile", method=method, scores=heads)
    text = page.build(folder.path)
    reader = read(text)
    assert "script" not in reader.tags and HOSTILE in "".join(reader.text)


def test_why_methods_fail_is_read_from_the_records(folder):
    folder.scale("tiny", like="tiny")
    heads = {"heads": [{}], "own": score(19, 1), "scaled": score(29, 1)}
    folder.save("previous_token", "tiny", method="pi", scores=heads)
    settings = [
        ("yarn", {}),
        ("dprope", {"n_hat": 20}),
        ("yarn", {"attention_factor": 1.0}),
        ("dprope", {"attention_factor": 1.07, "n_hat": 20}),
        ("dprope", {"n_hat": 40}),  # of an ablation
    ]
    for index, (method, options) in enumerate(settings):
        rows = [{"length": n, "mean": 0.1 * index, "low": 0, "high": 1, "n": 10} for n in (1024, 2048)]
        folder.save("passkey", "tiny", method=method, options=options, scores={"by_length": rows})
    (block,) = page.reasons.build(folder.path).blocks
    assert [[cell.text for cell in row] for row in block.rows] == [
        ["PI", "19.0", "29.0", "–"],
        ["YaRN", "–", "–", "0 of 10"],
        ["YaRN, attention × 1.00", "–", "–", "2 of 10"],
        ["DPRoPE (n̂ = 20)", "–", "–", "1 of 10"],
        ["DPRoPE (n̂ = 20), attention × 1.07", "–", "–", "3 of 10"],
    ]


def test_the_verdicts_that_are_counted_are_those_shown(whole):
    shown = re.findall(r"<td class='v \w+'>([^<]*)</td>", whole)
    counted = re.findall(r"(\d+) ([a-z ]+)[;.]", whole.split("brackets are 95 % intervals.")[1].split("</p>")[0])
    assert {verdict: int(count) for count, verdict in counted} == {verdict: shown.count(verdict) for verdict in shown}


def test_the_command_writes_beside_other_records(tmp_path, monkeypatch, capsys):
    module = importlib.import_module("report.__main__")
    monkeypatch.setattr(page, "build", lambda results: "<!doctype html>")
    results = tmp_path / "elsewhere" / "results"
    (results / "mine").mkdir(parents=True)
    (results / "mine" / "scale.json").touch()
    monkeypatch.setattr("sys.argv", ["report", "--results", str(results)])
    module.main()
    assert (tmp_path / "elsewhere" / "report" / "index.html").read_text() == "<!doctype html>"
    assert "index.html" in capsys.readouterr().out
