"""The audit finds what is known to be wrong in the paper, and nothing in a table that adds up."""

import pytest

from analysis import published
from report import audit
from tables.kit import latex


@pytest.fixture(scope="module")
def found():
    return {(f.where, f.what): f for f in audit.findings()}


def test_the_checks_and_those_that_fail_are_known(found):
    assert (len(audit.findings()), sum(not finding.holds for finding in audit.findings())) == (157, 9)
    assert len(found) == 157


def test_the_row_that_does_not_add_up():
    wrong = [f for f in audit.averages() if not f.holds]
    assert [(f.where, f.what, f.printed, f.derived) for f in wrong] == [
        ("Open LLM table", "Avg. of LLaMA2-7B, pi, factor = 2", "50.35", "52.335")
    ]
    # 16 LongBench rows with two averages each, 14 Open LLM, 10 RULER, and the two LongBench ablations.
    assert len(list(audit.averages())) == 2 * 16 + 14 + 10 + 6 + 4


def test_claims_of_the_abstract_hold_as_numbers(found):
    for what, derived in (
        ("disturbance reduced against PI at 8k", "+72.1 %"),
        ("disturbance reduced against PI at 16k", "+31.9 %"),
        ("Open LLM average, ours, worst change", "-0.120"),
        ("Open LLM average, ours, best change", "+0.220"),
    ):
        finding = found["abstract", what]
        assert finding.holds and finding.derived == derived
    assert found["abstract, section 4.2", "LongBench-E gain over PI(s=4), 7B, relative"].holds
    assert found["section 4.3", "Open LLM change, YaRN (s=4), 7B"].derived == "-0.530"


def test_what_does_not_hold_is_listed(found):
    wrong = {key for key, finding in found.items() if not finding.holds}
    assert ("perplexity table", "label of the LLaMA2-13B rows") in wrong
    assert ("section 4.3", "table that the drops of 0.12 and 0.53 are read from") in wrong
    assert ("LongBench-E over n̂", "Avg. of n_hat = 80 repeats the LongBench-E table") in wrong
    assert ("Open LLM table", "best of LLaMA2-7B, MMLU in bold") in wrong  # a tie, one of the two unmarked
    table = audit.build(list(found.values()))
    assert len(table.blocks[0].rows) == len(wrong)
    assert all(number in latex.render(table) for number in ("50.35", "52.335"))


def test_a_changed_number_is_noticed(monkeypatch):
    real = published.table

    def tampered(table):
        frame = real(table).copy()
        if table == "ruler":
            frame.loc[frame["metric"] == "16k", "score"] += 0.1
        return frame

    monkeypatch.setattr(published, "table", tampered)
    wrong = [f for f in audit.averages() if not f.holds]
    assert sum(f.where == "RULER table" for f in wrong) == 10
