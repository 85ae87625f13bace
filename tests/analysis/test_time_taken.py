"""What records took: sums that were worked out by hand."""

from dataclasses import astuple

import pytest

from analysis import time_taken
from core.errors import InputError

ON_TWO = {"environment": {"device": "2 × AMD EPYC"}}
ON_EIGHT = {"environment": {"device": "NVIDIA A100-SXM4-80GB", "gpus": 8}}


def test_compute_is_summed_by_model(made):
    made.add("passkey", "pi", seconds=60.0, **ON_TWO)
    made.add("ruler", "yarn", seconds=5.5, **ON_TWO)
    made.add("finetune", "yarn", seed=0, seconds=100, **ON_EIGHT)
    made.add("disturbance", None)  # by an older version, which did not say
    results = made.results("mine")
    repeated = results.folder / "mine" / "first_run" / "passkey"
    repeated.mkdir(parents=True)
    (repeated / "pi.json").write_text((results.folder / "mine/passkey/000_pi.json").read_text())
    other = results.folder / "other"
    other.mkdir()
    (other / "model.json").write_text((results.folder / "mine/model.json").read_text())

    found = time_taken.compute(results.folder)
    assert {name: astuple(one) for name, one in found.items()} == {
        "mine": (5, 225.5, 2 * 125.5, 800.0),
        "other": (0, 0, 0, 0),
    }
    assert astuple(found["mine"] + found["mine"]) == (10, 451.0, 502.0, 1600.0)


def test_a_record_that_repeats_anothers_selection_cost_nothing(made):
    made.add("loss_by_position", "pi", seconds=60.0, **ON_TWO)
    made.add("loss_by_position", "ntk", seconds=60.0, same_selection_as="pi", **ON_TWO)
    results = made.results()
    assert time_taken.took(results, "loss_by_position") == "60 s"
    assert astuple(time_taken.compute(results.folder)["mine"]) == (2, 60.0, 120.0, 0)


def test_time_on_cpus_and_on_gpus_is_told_apart(made):
    made.add("passkey", "pi", seconds=60.0, **ON_TWO)
    made.add("passkey", "yarn", seconds=20.0, **ON_TWO)
    made.add("ruler", "yarn", seconds=7200.0, **ON_EIGHT)
    results = made.results()
    assert time_taken.took(results, "passkey") == "80 s"
    assert time_taken.took(results, "ruler") == "2.0 h on GPUs"
    assert time_taken.took(results, "passkey", "ruler") == "80 s and 2.0 h on GPUs"
    assert time_taken.took(results, "perplexity") == "–"


def test_the_committed_records_say_on_what_they_ran():
    """So that the sum leaves none out."""
    for one in time_taken.compute().values():
        assert one.records and 0 < one.seconds <= one.cpu_seconds + one.gpu_seconds


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
