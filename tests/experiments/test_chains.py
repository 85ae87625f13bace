"""Chains: what runs beside what, what is skipped, what a kill leaves, and records that several settings share."""

import json
import subprocess
import sys
import time

import psutil
import pytest

from core import files
from core.errors import InputError
from experiments.kit.records import ROOT
from experiments.suites import chains
from experiments.suites.chains import Chain

MODULE = "tests.experiments.told"


def command(tmp_path, name):
    return [MODULE, str(tmp_path / "told"), name]


def test_commands_run_in_order_and_a_failure_says_where(tmp_path):
    many = [Chain(name, [command(tmp_path, f"{name}{i}") for i in range(2)]) for name in "abc"]
    assert chains.run(many, tmp_path / "logs", workers=2) == []
    rows = [json.loads(line)["name"] for line in (tmp_path / "told").read_text().splitlines()]
    assert sorted(rows) == ["a0", "a1", "b0", "b1", "c0", "c1"] and rows.index("a0") < rows.index("a1")
    bad = Chain("bad", [["experiments.passkey", "--depths", "0"]])
    with pytest.raises(InputError, match=r"bad failed \(.*--depths.*bad.log"):
        chains.run([bad], tmp_path / "logs")


def test_of_a_lenient_run_what_refuses_its_input_is_skipped(tmp_path):
    chain = Chain("a", [["experiments.passkey", "--model", "nonesuch"], ["experiments.passkey", "--help"]])
    (line,) = chains.run([chain], tmp_path / "logs", lenient=True)
    assert line.startswith("skipped passkey: ") and "nonesuch" in line
    assert "usage:" in (tmp_path / "logs" / "a.log").read_text()
    broken = Chain("b", [["experiments.passkey", "--no-such-option"]])
    with pytest.raises(InputError, match="b failed"):
        chains.run([broken], tmp_path / "logs", lenient=True)


def test_a_rerun_that_is_killed_leaves_no_process(tmp_path):
    code = (
        f"from experiments.suites.chains import *; run([Chain('a', [{command(tmp_path, 'parent')!r}])], "
        f"Path({str(tmp_path / 'logs')!r}))"
    )
    rerun = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    file = tmp_path / "told"
    end = time.monotonic() + 120
    while not (file.is_file() and file.read_text()):
        assert time.monotonic() < end and rerun.poll() is None
        time.sleep(0.1)
    (child,) = [p for p in psutil.Process(rerun.pid).children() if "chains" in " ".join(p.cmdline())]
    rerun.kill()
    rerun.wait()
    assert child.wait(30) is not None or not child.is_running()


def test_records_stand_again_under_each_setting_of_the_same_pairs(tmp_path):
    def write(name, options, seed=None):
        training = {} if seed is None else {"training": {"seed": seed}}
        record = {"method": "dprope", "factor": 2, "options": options, "scores": [name], "identity": "x", **training}
        files.write_json(tmp_path / "perplexity" / f"{name}.json", record)

    write("dprope_n-hat=44_s=2_seed=0", {"n_hat": 44}, seed=0)
    write("dprope_n-hat=44_s=2_seed=0_whole", {"n_hat": 44}, seed=0)
    write("dprope_n-hat=44_s=2", {"n_hat": 44})
    write("dprope_n-hat=44_s=2_seed=01", {"n_hat": 44}, seed=1)
    same = [("perplexity", ("dprope", {"intervals": 180})), ("ruler", ("dprope", {"intervals": 180}))]
    chains.share(Chain("dprope_n-hat=44_s=2_seed=0", [], same=same), tmp_path)
    made = {file.stem: json.loads(file.read_text()) for file in tmp_path.glob("*/*intervals*.json")}
    assert set(made) == {"dprope_intervals=180_s=2_seed=0", "dprope_intervals=180_s=2_seed=0_whole"}
