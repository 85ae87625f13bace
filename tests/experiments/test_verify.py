"""Verification agrees with what agrees, and with nothing else."""

import json
import shutil

import pytest

from experiments import verify as verify_module
from experiments.kit import records
from experiments.kit.checkpoint import Checkpoint
from tests.conftest import sentence

RUN = {"experiment": "copying", "method": "pi", "options": {}, "factor": 2}
RECORD = {
    "run": RUN,
    "identity": "x",
    "scores": {"mean": 1.5, "per": [1.0, 2.0], "name": "a"},
    "environment": {"device": "a", "seconds": 3.0},
}


SCORES = RECORD["scores"]


@pytest.fixture
def verify(call, tmp_path):
    """verify(measured, committed, …) -> what the script does with two records."""

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
    assert status == 0
    assert "1 records" in out
    near = RECORD | {"scores": SCORES | {"mean": 1.501}}
    assert verify(near)[0] == 0
    assert verify(near, RECORD, "--tolerance", "1e-4")[0] == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"run": RUN | {"options": {"n_hat": 40}}},
        {"scores": SCORES | {"per": [1.0]}},
        {"scores": SCORES | {"mean": None}},
        {"more": 1},
    ],
)
def test_another_structure_is_no_agreement(verify, changed):
    assert verify(RECORD | changed, RECORD)[0] == 1
    assert verify(RECORD, RECORD | changed)[0] == 1


@pytest.mark.parametrize("broken", ["[]", json.dumps(RECORD).replace("1.5", "NaN"), "{"])
def test_a_record_that_is_none_is_named(verify, broken):
    for pair in ((broken, RECORD), (RECORD, broken)):
        status, _, err = verify(*pair)
        assert status == 2
        assert "a.json" in sentence(err)


def test_the_papers_disturbances_are_computed_and_what_is_measured_is_compared(
    call, done, tmp_path, monkeypatch
):
    """Into a folder of the code that measures; the second call measures nothing."""
    passkey = "passkey --model tiny --method pi --lengths 512 --keys 1 --depths 1"
    monkeypatch.setattr(verify_module, "MEASURED", (passkey,))
    monkeypatch.setattr(Checkpoint, "source", str(records.ROOT / "models" / "tiny"))
    monkeypatch.setattr(records, "code_hash", lambda: "code")
    monkeypatch.setattr(records, "program", lambda name: f"experiments.{name}")
    monkeypatch.setattr(records, "ROOT", tmp_path)  # of which the folder is a part
    results = tmp_path / "results"
    for measured in (True, False):
        status, out, _ = call("verify --results", results)
        assert status == 2
        assert "6 disturbances; all agree with the paper's" in out
        assert ("done already" in out) != measured
    (folder,) = (tmp_path / "build" / "verify").glob("*/results")
    shutil.copytree(folder, results)
    done("verify --results", results)
