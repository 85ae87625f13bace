"""What records took: sums that were worked out by hand."""

from dataclasses import astuple

import pytest

from analysis import results, time_taken
from core.errors import InputError

ON_TWO = {"environment": {"device": "2 × AMD EPYC"}}
ON_EIGHT = {"environment": {"device": "NVIDIA A100-SXM4-80GB", "gpus": 8}}


def test_time_is_summed_on_cpus_and_on_gpus_apart(recorder):
    recorder.add("passkey", "pi", seconds=60.0, **ON_TWO)
    recorder.add("passkey", "yarn", seconds=20.0, **ON_TWO)
    recorder.add("passkey", "ntk", seconds=60.0, same_selection_as="pi", **ON_TWO)  # a copy took no time
    recorder.add("ruler", "yarn", seconds=7200.0, **ON_EIGHT)
    measured = recorder.results()
    assert time_taken.took(measured, "passkey") == "80 s"
    assert time_taken.took(measured, "passkey", "ruler") == "80 s and 2.0 h on GPUs"
    assert time_taken.took(measured, "perplexity") == "–"
    assert astuple(time_taken.compute(measured.folder)) == (4, 7280.0, 160.0, 57600.0)


def test_the_committed_records_say_on_what_they_ran():
    """So that the sum leaves none out."""
    for measured in results.every():
        for run in (run for name in measured.experiments() for run in measured.records(name)):
            time = time_taken._of(run)
            assert 0 <= time.seconds <= time.cpu_seconds + time.gpu_seconds, run["file"]


def test_how_long_a_command_took(tmp_path):
    file = tmp_path / "commands.csv"
    file.write_text("command,seconds,measured on\nmake a,50,a laptop\nmake b,400,a laptop\nmake c,9000,a laptop\n")
    assert time_taken.commands(file) == {"make a": "50 s", "make b": "7 min", "make c": "2.5 h"}
    for text in ("", "command,minutes\nmake a,3\n", "command,seconds\nmake a,x\n", "command,seconds\nmake a,inf\n"):
        file.write_text(text)
        with pytest.raises(InputError, match="commands.csv"):
            time_taken.commands(file)
