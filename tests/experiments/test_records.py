"""Records are told apart by everything that matters, and stay in their folder; a journal that was
cut or edited."""

import json
import re

import pytest

import records
from core.errors import InputError
from core.setting import Setting
from experiments.kit import command_line
from records import journal
from tests.changes import changes


@pytest.mark.parametrize(
    "name", ["..", "", "a/b", "../../../escaped", ".hidden", "a\0b", "x" * 300, 7, None]
)
def test_no_name_leads_out_of_results(tmp_path, name):
    with pytest.raises(InputError):
        records.path(tmp_path, name, "passkey", "pi_s=2")


def test_names_and_identities_tell_runs_apart():
    options = {"n_hat": 80, "intervals": 90}
    assert Setting.make("dprope", options, 2).run_name() == "dprope_intervals=90_n-hat=80_s=2"
    tuned = {"method": "pi", "factor": 4.0, "options": {}, "training": {"seed": 3}}
    assert records.run_of(tuned) == Setting.make("pi", {}, 4).run_name(3) == "pi_s=4_seed=3"
    assert records.identity(a=1, b=2) == records.identity(b=2, a=1) != records.identity(a=1, b=3)


def test_a_committed_record_names_no_path_of_the_machine_that_made_it():
    files = list(records.RESULTS.rglob("*.json"))
    assert files
    for file in files:
        assert not re.search(r'": "[/~]|[A-Z]:\\\\', file.read_text()), file


def test_a_journal_that_was_cut_has_its_whole_lines_and_an_edited_one_is_named(tmp_path):
    file = tmp_path / "run.jsonl"
    entries = {"a": 1, "ü": {"b": [None]}}
    with journal.opened(file) as whole:
        for key, value in entries.items():
            whole.add(key, value)
    written = file.read_bytes()
    for cut in range(len(written) + 1):
        file.write_bytes(written[:cut])
        whole_lines = written[:cut].count(b"\n")
        with journal.opened(file) as resumed:
            assert [*resumed.entries.items()] == [*entries.items()][:whole_lines]
    first, rest = written.split(b"\n", 1)
    values = [json.dumps(other).encode() for _, _, other in changes(json.loads(first))]
    for edited in (b"", first[:-1], b"3", b"[" * 100_000, b'["a", 1]', *values):
        file.write_bytes(edited + b"\n" + rest)
        refused = pytest.raises(InputError, match=r"line 1 of .*run\.jsonl")
        with refused, journal.opened(file):
            pass
    of_another_run = tmp_path / "another.jsonl"
    of_another_run.write_bytes(written)
    refused = pytest.raises(InputError, match=r"line 1 of .*another\.jsonl")
    with refused, journal.opened(of_another_run):
        pass


def test_scores_are_printed_in_aligned_rows():
    score = {"mean": 0.5, "low": 0.25, "high": 0.75, "n": 8}
    scores = {
        "by_length": [{"length": 512} | score, {"length": 1024, "token": score, "windows": 3}],
        "average": score | {"mean": 12.34567},
        "by_document": {"mmlu": [0.0, 1.0]},
    }
    assert command_line.aligned(command_line.rows(scores)) == [
        "by_length length 512         0.5    [0.25, 0.75]  n = 8",
        "by_length length 1024 token  0.5    [0.25, 0.75]  n = 8",
        "average                      12.35  [0.25, 0.75]  n = 8",
    ]
    assert command_line.aligned(command_line.rows({"name": "a"})) == []
