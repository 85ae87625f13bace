"""Verification agrees with what agrees, and with nothing else."""

import json

import pytest

RECORD = {"identity": "x", "options": {}, "scores": {"mean": 1.5, "per": [1.0, 2.0], "name": "a"}, "seconds": 3.0}


@pytest.fixture
def verify(call, tmp_path):
    def run(measured, committed=RECORD, *arguments):
        for folder, record in (("measured", measured), ("results", committed)):
            file = tmp_path / folder / "tiny" / "passkey" / "a.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(record if isinstance(record, str) else json.dumps(record))
        return call("verify", tmp_path / "measured", "--results", tmp_path / "results", *arguments)

    return run


def test_time_and_place_may_differ_and_scores_within_the_tolerance(verify):
    status, out, _ = verify(RECORD | {"seconds": 9, "environment": {"device": "b"}})
    assert status == 0 and "1 records" in out
    assert verify(RECORD | {"scores": RECORD["scores"] | {"mean": 1.501}})[0] == 0
    assert verify(RECORD | {"scores": RECORD["scores"] | {"mean": 1.501}}, RECORD, "--tolerance", "1e-4")[0] == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"options": []},
        {"scores": {}},
        {"scores": RECORD["scores"] | {"per": [1.0]}},
        {"scores": RECORD["scores"] | {"mean": None}},
        {"more": 1},
    ],
)
def test_another_structure_is_no_agreement(verify, changed):
    for pair in ((RECORD | changed, RECORD), (RECORD, RECORD | changed)):
        assert verify(*pair)[0] == 1


@pytest.mark.parametrize("broken", ["", "{", "[]", json.dumps(RECORD).replace("1.5", "NaN"), json.dumps(RECORD)[:40]])
def test_a_record_that_is_none_is_named(verify, broken):
    for pair in ((broken, RECORD), (RECORD, broken)):
        status, _, err = verify(*pair)
        assert status == 2 and "a.json" in err and err.count("\n") == 1
