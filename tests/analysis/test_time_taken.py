"""What records took: sums that were worked out by hand."""

import shutil
from dataclasses import astuple

import pytest

from analysis import results, time_taken
from core.errors import InputError

ON_TWO = {"environment": {"device": "2 × AMD EPYC"}}
ON_EIGHT = {"environment": {"device": "NVIDIA A100-SXM4-80GB", "gpus": 8}}


def test_compute_is_summed_over_models(made):
    made.add("passkey", "pi", seconds=60.0, **ON_TWO)
    made.add("ruler", "yarn", seconds=5.5, **ON_TWO)
    made.add("finetune", "yarn", seed=0, seconds=100, **ON_EIGHT)
    made.add("disturbance", None)  # by an older version, which did not say
    measured = made.results("mine")
    repeated = measured.folder / "mine" / "first_run" / "passkey"
    repeated.mkdir(parents=True)
    (repeated / "pi.json").write_text((measured.folder / "mine/passkey/000_pi.json").read_text())
    assert astuple(time_taken.compute(measured.folder)) == (5, 225.5, 2 * 125.5, 800.0)
    shutil.copytree(measured.folder / "mine", measured.folder / "other")
    assert astuple(time_taken.compute(measured.folder)) == (10, 451.0, 502.0, 1600.0)


def test_a_record_that_repeats_anothers_selection_cost_nothing(made):
    made.add("loss_by_position", "pi", seconds=60.0, **ON_TWO)
    made.add("loss_by_position", "ntk", seconds=60.0, same_selection_as="pi", **ON_TWO)
    measured = made.results()
    assert time_taken.took(measured, "loss_by_position") == "60 s"
    assert astuple(time_taken.compute(measured.folder)) == (2, 60.0, 120.0, 0)


def test_time_on_cpus_and_on_gpus_is_told_apart(made):
    made.add("passkey", "pi", seconds=60.0, **ON_TWO)
    made.add("passkey", "yarn", seconds=20.0, **ON_TWO)
    made.add("ruler", "yarn", seconds=7200.0, **ON_EIGHT)
    measured = made.results()
    assert time_taken.took(measured, "passkey") == "80 s"
    assert time_taken.took(measured, "ruler") == "2.0 h on GPUs"
    assert time_taken.took(measured, "passkey", "ruler") == "80 s and 2.0 h on GPUs"
    assert time_taken.took(measured, "perplexity") == "–"


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
    assert {"make env", "make reproduce", "make test"} <= set(time_taken.commands())


@pytest.mark.parametrize(
    "text",
    ["", "command,minutes\nmake a,3\n", *(f"command,seconds\nmake a,{value}\n" for value in ("", "x", "-5", "inf"))],
)
def test_a_duration_that_is_none_is_refused(text, tmp_path):
    (tmp_path / "commands.csv").write_text(text)
    with pytest.raises(InputError, match="commands.csv"):
        time_taken.commands(tmp_path / "commands.csv")
