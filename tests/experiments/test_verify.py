"""Verification agrees with what agrees, and with nothing else."""

import shutil

import pytest

import records
from experiments import verify as verify_module
from tests.experiments.written import PASSKEY
from tests.files import write
from tests.models import checkpoint

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
            file = tmp_path / folder / "tiny/copying/a.json"
            record = record | {"sha256": records.content_hash(record)}
            write(file, record)
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
        {"more": 1},
    ],
)
def test_another_structure_is_no_agreement(verify, changed):
    assert verify(RECORD | changed, RECORD)[0] == 1
    assert verify(RECORD, RECORD | changed)[0] == 1


def test_what_is_measured_here_is_compared(done, refusal, tmp_path, monkeypatch):
    """Into a folder of the code that measures."""
    model = checkpoint(tmp_path / "toy", max_position_embeddings=512)
    monkeypatch.setattr(verify_module, "MEASURED", (f"{PASSKEY} --model {model}",))
    monkeypatch.setattr(records, "code_hash", lambda: "code")
    monkeypatch.setattr(records, "ROOT", tmp_path)  # of which the folder is a part
    results = tmp_path / "results"
    assert "has a counterpart" in refusal("verify --results", results)
    shutil.copytree(tmp_path / "build/verify/code/results", results)
    assert "all agree" in done("verify --results", results)
