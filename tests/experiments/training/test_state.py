"""A run's files on disk: what is not what was written is refused in one sentence; two runs keep
apart."""

import os

import pytest

from core.errors import InputError
from experiments.training import state
from experiments.training.state import MANIFEST, Output
from records import trained
from tests.changes import answers
from tests.files import read, write
from tests.models import checkpoint, fine_tuned

RUN = {"method": "pi", "seed": 0, "processes": 1}
STATE = {"global_step": 100, "log_history": [{"loss": 2.5, "step": 1}], "is_local_process": True}


@pytest.fixture(scope="module")
def facts():
    return state.facts(RUN, "core/*.py", "experiments/training/*.py")


@pytest.fixture
def folder(tmp_path, facts):
    """A run's directory with two checkpoints, the newer of which is gone on from."""
    for number in (90, 100):
        saved = tmp_path / f"run/checkpoint-{number}"
        (saved / "shards").mkdir(parents=True)
        for name in ("model.safetensors", "shards/0.pt"):
            (saved / name).write_bytes(name.encode() * 99)
        write(saved / "trainer_state.json", STATE)
        state.write_manifest(saved, facts)
    return tmp_path / "run"


# Of these another value of the right type decides nothing: `commit` says where the code is found;
# other hashes are refused where weights are read.
FREE = {("commit",), ("sha256", "tensors")}


@pytest.mark.parametrize("name", [MANIFEST, "trainer_state.json"])
def test_a_checkpoint_of_which_any_value_was_changed_is_refused(folder, facts, name):
    file = folder / "checkpoint-100" / name
    whole = file.read_text()
    for at, kind, found in answers(file, read(file), lambda: state.whole(folder, facts)):
        if at not in FREE:
            assert isinstance(found, str) and str(folder) in found, (at, kind)
    file.write_text(whole)
    assert state.whole(folder, facts) == folder / "checkpoint-100"


def test_a_training_json_of_which_any_value_was_changed_is_refused(tmp_path):
    folder = checkpoint(tmp_path / "tuned")
    as_it_is = fine_tuned(folder)
    file = folder / trained.FILE
    assert trained.in_folder(folder) == as_it_is
    for at, kind, found in answers(file, as_it_is, lambda: trained.in_folder(folder)):
        if at not in FREE:
            assert isinstance(found, str) and str(file) in found, (at, kind)


def test_a_file_less_is_refused_by_name(folder, facts):
    (folder / "checkpoint-100/shards/0.pt").unlink()
    with pytest.raises(InputError, match="shards/0.pt"):
        state.whole(folder, facts)


def test_a_checkpoint_that_a_kill_left_unfinished_goes_and_what_is_not_ours_stays(tmp_path):
    output = Output(tmp_path / "out", {"method": "pi"})
    for left in ("checkpoint-5", "finished"):
        (output.unfinished / left).mkdir(parents=True)
    (output.unfinished / "notes.txt").write_text("mine")
    output.begin("data")
    assert {path.name for path in output.unfinished.iterdir()} == {"finished", "notes.txt"}


def test_the_second_run_of_one_output_says_who_holds_it(tmp_path):
    output = Output(tmp_path / "out", {"method": "pi"})
    with output.held(), pytest.raises(InputError, match=str(os.getpid())), output.held():
        pass
