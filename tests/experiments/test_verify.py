"""Verification agrees with what agrees, and with nothing else."""

import json

import pytest

from experiments import verify as verify_module
from experiments.kit import records
from experiments.kit.base_model import BaseModel
from experiments.kit.records import ROOT

RUN = {"experiment": "copying", "method": "pi", "options": {}, "factor": 2}
RECORD = {
    "run": RUN,
    "identity": "x",
    "scores": {"mean": 1.5, "per": [1.0, 2.0], "name": "a"},
    "environment": {"device": "a", "seconds": 3.0},
}


@pytest.fixture
def verify(call, tmp_path):
    def run(measured, committed=RECORD, *arguments):
        for folder, record in (("measured", measured), ("results", committed)):
            file = tmp_path / folder / "tiny" / "copying" / "a.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(record, dict):
                record = json.dumps(record | {"sha256": records.content_hash(record)})
            file.write_text(record)
        return call("verify", tmp_path / "measured", "--results", tmp_path / "results", *arguments)

    return run


def test_time_and_place_may_differ_and_scores_within_the_tolerance(verify):
    status, out, _ = verify(
        RECORD | {"identity": "y", "environment": {"device": "b", "seconds": 9}}
    )
    assert status == 0 and "1 records" in out
    assert verify(RECORD | {"scores": RECORD["scores"] | {"mean": 1.501}})[0] == 0
    assert (
        verify(
            RECORD | {"scores": RECORD["scores"] | {"mean": 1.501}}, RECORD, "--tolerance", "1e-4"
        )[0]
        == 1
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"run": RUN | {"options": {"n_hat": 40}}},
        {"scores": RECORD["scores"] | {"per": [1.0]}},
        {"scores": RECORD["scores"] | {"mean": None}},
        {"more": 1},
    ],
)
def test_another_structure_is_no_agreement(verify, changed):
    for pair in ((RECORD | changed, RECORD), (RECORD, RECORD | changed)):
        assert verify(*pair)[0] == 1


@pytest.mark.parametrize(
    "broken", ["[]", json.dumps(RECORD).replace("1.5", "NaN"), json.dumps(RECORD)[:40]]
)
def test_a_record_that_is_none_is_named(verify, broken):
    for pair in ((broken, RECORD), (RECORD, broken)):
        status, _, err = verify(*pair)
        assert status == 2 and "a.json" in err and err.count("\n") == 1


def test_the_papers_disturbances_are_computed_and_what_is_measured_is_compared(
    call, tmp_path, monkeypatch
):
    """Into a folder of the code that measures; the second call measures nothing."""
    monkeypatch.setattr(
        verify_module,
        "MEASURED",
        ("passkey --model tiny --method pi --lengths 512 --keys 1 --depths 1",),
    )
    monkeypatch.setattr(records, "code_hash", lambda program: "code")
    monkeypatch.setattr(records, "ROOT", tmp_path)
    monkeypatch.setattr(BaseModel, "source", str(ROOT / "models" / "tiny"))
    monkeypatch.setattr(records, "program", lambda name: f"experiments.{name}")
    for measured in (True, False):
        status, out, err = call("verify", "--results", tmp_path / "results")
        assert status == 2 and "6 disturbances; all agree with the paper's" in out, err
        (file,) = (tmp_path / "build" / "verify").glob("*/results/tiny/passkey/pi_s=2.json")
        assert ("done already" in out) != measured
    (tmp_path / "results" / "tiny" / "passkey").mkdir(parents=True)
    (tmp_path / "results" / "tiny" / "passkey" / file.name).write_bytes(file.read_bytes())
    assert call("verify", "--results", tmp_path / "results")[0] == 0
