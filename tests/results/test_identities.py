"""A record is known by everything that was asked of it: its identity is a hash of its run."""

import hashlib
import json

from experiments.kit.records import MODEL, RESULTS

FILES = [file for file in sorted(RESULTS.rglob("*.json")) if file.name != MODEL]
RECORDS = {file: json.loads(file.read_text(encoding="utf-8")) for file in FILES}


def computed(record: dict) -> str:
    return hashlib.sha256(json.dumps(record["run"], sort_keys=True).encode()).hexdigest()[:12]


def test_every_identity_is_that_of_what_the_record_states():
    copies = {file for file, record in RECORDS.items() if record.get("same_selection_as")}
    measured = {computed(record) for file, record in RECORDS.items() if file not in copies}
    for file, record in RECORDS.items():
        if file in copies:
            # it keeps the identity of the run that it copies, whose method has another name
            assert record["identity"] in measured, file
        else:
            assert record["identity"] == computed(record), file


def test_every_score_states_the_content_of_what_was_scored_and_of_the_model():
    for file, record in RECORDS.items():
        run = record["run"]
        assert run["model"].keys() >= {"source", "sha256", "tokenizer"}, file
        if "base" in record:
            assert record["base"].keys() >= {"tokenizer", "config"}, file
        if run["experiment"] in ("passkey", "ruler", "longbench_e"):
            assert run["data"].keys() >= {"samples", "sha256"} and run["data"]["samples"], file
