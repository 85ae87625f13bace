"""The HTML report is one page that needs nothing else, well formed, with everything that it inserts escaped."""

import importlib
import re
from collections import Counter

import pytest

from analysis import results
from analysis.claims.finding import NONE, VERDICTS
from analysis.hypothesis_tests import BELOW, Estimate, decide, within
from experiments.kit.records import RESULTS, ROOT
from report import forest, page, verdict_table
from report.claims import CLAIMS
from tables.kit import command
from tests.report.reading import Reader


def read(text):
    reader = Reader(text)
    assert not reader.unbalanced and not reader.open
    assert not [name for name, count in Counter(reader.ids).items() if count > 1]
    assert all(target[0] == "#" and target[1:] in reader.ids for target in reader.targets)
    return reader


@pytest.fixture(scope="module")
def whole():
    return page.build(RESULTS)


def test_the_page_is_well_formed_and_needs_nothing_else(whole):
    reader = read(whole)
    assert all(value.startswith("data:") for value in reader.loaded)
    assert not re.search(r"@import|url\(|fetch\(|https?://", whole)
    assert all(claim.text in reader.said and claim.where in reader.said for claim in CLAIMS)


def test_every_figure_is_on_it_once_and_is_described(whole):
    images = read(whole).images
    assert len(images) == len(list((ROOT / "figures").glob("*/*.png"))) == len({image["src"] for image in images})
    assert all(len(image["alt"]) > 20 and int(image["width"]) > 100 < int(image["height"]) for image in images)


def test_every_table_of_every_scale_is_on_it(whole):
    ids = set(read(whole).ids)
    for model in results.models():
        written = {f"table-{model}-{file.stem}" for file in (ROOT / "tables" / model).glob("*.tex")}
        assert written and written <= ids


def test_what_a_claim_is_said_to_be_shown_by_is_a_figure_or_a_table():
    figures = importlib.import_module("figures.kit.command").names()
    for claim in CLAIMS:
        assert claim.shown and set(claim.shown) <= {*figures, *command.names()}


HOSTILE = "<script>alert('1')</script> & \"two\""


def test_what_records_say_is_escaped(folder):
    plain = Reader(page.build(folder_of(folder, "A model"))).tags.count("script")
    reader = read(page.build(folder_of(folder, HOSTILE)))
    assert reader.tags.count("script") == plain == 1 and HOSTILE in reader.said


def folder_of(folder, title):
    folder.scale("hostile", title=title)
    for method in ("yarn", "dprope", f"my-{title}"):
        folder.ruler(method, {8192: 40, 16384: 40}, model="hostile", data={title: "1"})
    return folder.path


def test_a_scale_of_any_name_has_links_that_lead_somewhere(folder):
    folder.scale("a 'b' & c", title="mine")
    folder.ruler("pi", {8192: 40, 16384: 40}, model="a 'b' & c")
    reader = read(page.build(folder.path))
    assert any("model-" in target and "%20" in target for target in reader.targets)


def test_the_verdicts_that_are_counted_are_those_shown(whole):
    legend = whole[whole.index("<dl class=legend>") : whole.index("</dl>", whole.index("<dl class=legend>"))]
    counted = {word: int(count) for word, count in re.findall(r"'>([^<]+)</span> <b>(\d+)</b>", legend)}
    cells = re.findall(r"<td data-model='[^']*' data-order=\d><span class='verdict \w+'>([^<]+)<", whole)
    assert counted == {verdict: cells.count(verdict) for verdict in VERDICTS if verdict != NONE}
    meant = re.findall(r"<dd>([^<]+)</dd>", legend)
    assert len(meant) == len(set(meant)) == len(counted)


def test_a_claim_without_records_says_so(folder):
    folder.scale("mine")
    claims = verdict_table.tested(folder.path)
    assert verdict_table.counts(claims) == {NONE: len(CLAIMS), **verdict_table.counts(claims)}
    assert not any(one.by_model for one in claims if one.claim.shown != ("disturbance",))


def test_a_plot_shows_a_number_its_interval_and_the_papers_where_they_lie():
    decisions = decide([(Estimate(2.0, 0.5, 1.0), within(1.0), 0.0), (Estimate(-4.0, 1.0, 1.0), BELOW, None)])
    low, high = forest.spans(decisions)
    drawn = [forest.line(decision, low, high) for decision in decisions]

    def at(value):
        return pytest.approx(forest.WIDTH * (value - low) / (high - low), abs=0.06)

    def found(pattern, text):
        return [float(value) for value in re.search(pattern, text).groups()]

    for decision, text in zip(decisions, drawn):
        interval = decision.interval
        assert low < interval.low and interval.high < high
        assert found(r"interval d=\"M([-\d.]+) [\d.]+H([-\d.]+)", text) == [at(interval.low), at(interval.high)]
        assert found(r"cx=\"([-\d.]+)", text) == [at(decision.estimate.mean)]
    assert found(r"paper d=\"M([-\d.]+)", drawn[0]) == [at(0)] and "class=paper" not in drawn[1]
    x, width = found(r"x=\"([-\d.]+)\" y=\"0\" width=\"([-\d.]+)", drawn[1])
    assert (x, width) == (0, at(0))


def test_the_command_writes_beside_other_records(tmp_path, monkeypatch, capsys):
    module = importlib.import_module("report.__main__")
    monkeypatch.setattr(page, "build", lambda results: "<!doctype html>")
    results = tmp_path / "elsewhere" / "results"
    (results / "mine").mkdir(parents=True)
    (results / "mine" / "model.json").touch()
    monkeypatch.setattr("sys.argv", ["report", "--results", str(results)])
    module.main()
    assert (tmp_path / "elsewhere" / "report" / "index.html").read_text() == "<!doctype html>"
    assert "index.html" in capsys.readouterr().out
