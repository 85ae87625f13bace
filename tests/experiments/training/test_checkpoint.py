"""A checkpoint is gone on with only whole, by the run and the code that it is of; two runs keep
apart."""

import json
import os

import pytest

from core.errors import InputError
from experiments.training import checkpoint
from experiments.training.output import Output

RUN = {"method": "pi", "seed": 0, "processes": 1}
MANIFEST = checkpoint.MANIFEST


@pytest.fixture(scope="module")
def facts():
    return checkpoint.facts(RUN, "core/**/*.py", "experiments/training/*")


@pytest.fixture
def folder(tmp_path, facts):
    """A run's directory with two checkpoints, the newer of which is gone on from."""
    for number in (90, 100):
        saved = tmp_path / "run" / f"checkpoint-{number}"
        (saved / "shards").mkdir(parents=True)
        for name in ("optimizer.pt", "model.safetensors", "shards/0.pt"):
            (saved / name).write_bytes(name.encode() * 99)
        checkpoint.write_manifest(saved, facts)
    return tmp_path / "run"


def flip(file):
    content = bytearray(file.read_bytes())
    content[40] ^= 1
    file.write_bytes(content)


def manifest(**changes):
    def apply(saved):
        content = json.loads((saved / MANIFEST).read_text())
        for key, change in changes.items():
            content[key] |= change
        (saved / MANIFEST).write_text(json.dumps(content))

    return apply


SPOILT = {
    "without a shard": (lambda saved: (saved / "shards" / "0.pt").unlink(), "shards/0.pt"),
    "with a flipped bit": (lambda saved: flip(saved / "model.safetensors"), "model.safetensors"),
    "with a torn manifest": (lambda saved: os.truncate(saved / MANIFEST, 40), MANIFEST),
    "of another run": (manifest(run={"method": "yarn"}), "method"),
    "of other code": (manifest(code={"core/rope.py": "0" * 64}), "core/rope.py"),
    "of another torch": (manifest(packages={"torch": "1.0"}), "torch"),
}


def test_a_whole_one_is_gone_on_from(folder, facts):
    assert checkpoint.whole(folder, facts) == folder / "checkpoint-100"
    assert [path.name for path in checkpoint.checkpoints(folder)] == [
        "checkpoint-90",
        "checkpoint-100",
    ]
    assert checkpoint.whole(folder / "nowhere", facts) is None


@pytest.mark.parametrize("spoil, name", SPOILT.values(), ids=SPOILT)
def test_any_other_is_refused_by_name(folder, facts, spoil, name):
    spoil(folder / "checkpoint-100")
    with pytest.raises(InputError) as error:
        checkpoint.whole(folder, facts)
    assert (
        name in str(error.value)
        and str(folder) in str(error.value)
        and "\n" not in str(error.value)
    )


@pytest.fixture
def output(tmp_path):
    return Output(tmp_path / "out", {"method": "pi", "identity": "one"})


def test_what_a_kill_left_without_a_checkpoint_goes_and_what_is_not_ours_stays(output):
    for left in ("tensorboard", "finished"):
        (output.unfinished / left).mkdir(parents=True)
    (output.unfinished / "notes.txt").write_text("mine")
    output.begin("data")
    assert [path.name for path in output.unfinished.iterdir()] == ["notes.txt"]


def test_the_second_run_of_one_output_says_who_holds_it(output):
    with output.held(), pytest.raises(InputError, match=str(os.getpid())), output.held():
        pass
