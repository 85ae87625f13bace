"""Records and journals: atomic, resumable, told apart by everything that matters."""

import os
import platform
import re
import shutil
import subprocess
import sys

import pytest

from core.errors import InputError
from experiments.kit import records
from experiments.kit.journal import Journal


def test_a_record_is_whole_or_absent(tmp_path, monkeypatch):
    file = records.path(tmp_path, "tiny", "passkey", "pi_s=2")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError):
        records.write(file, {"identity": "a"})
    assert not list(file.parent.iterdir())
    monkeypatch.undo()
    records.write(file, {"identity": "a", "lengths": [64], "scores": [1.5]})
    assert records.read(file)["scores"] == [1.5]
    assert set(records.read(file)["environment"]) == {"python", "packages", "device", "commit"}


def test_another_runs_record_is_replaced_only_when_told_to(tmp_path):
    file = records.path(tmp_path, "tiny", "passkey", "pi_s=2")
    assert not records.is_done(file, {"identity": "a"})
    records.write(file, {"identity": "a", "lengths": [64]})
    assert records.is_done(file, {"identity": "a", "lengths": (64,)})
    with pytest.raises(InputError, match=r"lengths \[64\], not \[128\]"):
        records.is_done(file, {"identity": "b", "lengths": [128]})
    assert not records.is_done(file, {"identity": "b", "lengths": [128]}, replace=True)


@pytest.mark.parametrize(
    "name", ["..", ".", "", "a/b", "/etc", "../../../escaped", ".hidden", "a\0b", "x" * 300, 7, None]
)
def test_no_name_leads_out_of_results(tmp_path, name):
    with pytest.raises(InputError):
        records.path(tmp_path, name, "passkey", "pi_s=2")


@pytest.mark.skipif(
    not shutil.which("lscpu") or platform.machine() != "x86_64", reason="lscpu and the kernel name x86-64 alike"
)
def test_a_record_names_the_processor(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # without a GPU
    shown = subprocess.run(["lscpu"], env={"LC_ALL": "C"}, check=True, capture_output=True, text=True).stdout
    name = re.search(r"^Model name: +(.+)$", shown, re.MULTILINE)
    expected = " ".join(name[1].split()) if name else "x86_64 CPU"
    assert records.environment()["device"] == f"{os.cpu_count()} × {expected}"


def test_names_and_identities_tell_runs_apart():
    assert records.run_name("dprope", 2, {"n_hat": 80, "intervals": 90}) == "dprope_intervals=90_n-hat=80_s=2"
    tuned = {"method": "pi", "factor": 4.0, "options": {}, "training": {"seed": 3}}
    assert records.run_of(tuned) == records.run_name("pi", 4, {}, seed=3) == "pi_s=4_seed=3"
    assert records.identity(a=1, b=2) == records.identity(b=2, a=1) != records.identity(a=1, b=3)


def test_a_committed_record_names_no_path_of_the_machine_that_made_it():
    files = list(records.RESULTS.rglob("*.json"))
    assert files and not [file for file in files if re.search(r'": "[/~]|[A-Z]:\\\\', file.read_text())]


def test_journal_drops_a_torn_last_line_and_goes_on(tmp_path):
    journal = Journal(tmp_path / "runs" / "x.jsonl")
    journal.add("one", {"loss": 0.1})
    journal.add("two", [1, 2])
    journal.close()
    whole = journal.file.read_bytes()
    for cut in range(1, len('["two", [1, 2]]\n')):
        journal.file.write_bytes(whole[:-cut])
        with Journal(journal.file) as again:
            assert again.parts == {"one": {"loss": 0.1}}
            again.add("two", [1, 2])
        assert journal.file.read_bytes() == whole
    with Journal(journal.file) as again:
        assert again["two"] == [1, 2]
