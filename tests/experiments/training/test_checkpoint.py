"""A checkpoint is gone on with only whole, by the run and the code that it is of; two runs keep apart."""

import json
import os
import shutil

import pytest
import torch

from core import files
from core.errors import InputError
from experiments.training import checkpoint
from experiments.training.trainer import Trainer

RUN = {"method": "pi", "seed": 0, "processes": 1}
PATTERNS = "core/**/*.py", "experiments/training/*"
STATE = "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json", "model.safetensors"


@pytest.fixture(scope="module")
def facts():
    return checkpoint.facts(RUN, *PATTERNS)


@pytest.fixture
def folder(tmp_path, facts):
    """A run's directory with two checkpoints, the newer of which is gone on from."""
    for number in (90, 100):
        made = tmp_path / "run" / f"checkpoint-{number}"
        (made / "shards").mkdir(parents=True)
        for name in (*STATE, "shards/0.pt"):
            (made / name).write_bytes(name.encode() * 99)
        files.write_json(made / checkpoint.MANIFEST, {"files": checkpoint._sizes(made), **facts})
    return tmp_path / "run"


def manifest(change):
    def apply(made):
        file = made / checkpoint.MANIFEST
        stated = json.loads(file.read_text())
        change(stated)
        file.write_text(json.dumps(stated))

    return apply


SPOILT = {
    **{f"without {name}": (lambda made, name=name: (made / name).unlink(), name) for name in (STATE[0], "shards/0.pt")},
    "without a manifest": (lambda made: (made / checkpoint.MANIFEST).unlink(), checkpoint.MANIFEST),
    "cut short": (lambda made: os.truncate(made / "optimizer.pt", 40), "optimizer.pt"),
    "a torn manifest": (lambda made: os.truncate(made / checkpoint.MANIFEST, 40), checkpoint.MANIFEST),
    "a manifest of no files": (manifest(lambda stated: stated.update(files=[])), checkpoint.MANIFEST),
    "another run": (manifest(lambda stated: stated["run"].update(method="yarn")), "method"),
    "other code": (manifest(lambda stated: stated["code"].update({"core/rope.py": "0" * 64})), "core/rope.py"),
    "another torch": (manifest(lambda stated: stated["packages"].update(torch="1.0")), "torch"),
}


def test_a_whole_one_is_gone_on_from(folder, facts):
    assert checkpoint.whole(folder, facts) == folder / "checkpoint-100"
    assert [path.name for path in checkpoint.checkpoints(folder)] == ["checkpoint-90", "checkpoint-100"]
    assert checkpoint.whole(folder / "nowhere", facts) is None


@pytest.mark.parametrize("spoil, named", SPOILT.values(), ids=SPOILT)
def test_any_other_is_refused_by_name(folder, facts, spoil, named):
    spoil(folder / "checkpoint-100")
    with pytest.raises(InputError) as error:
        checkpoint.whole(folder, facts)
    assert named in str(error.value) and str(folder) in str(error.value) and "\n" not in str(error.value)
    assert (folder / "checkpoint-100").is_dir()


# ---------------------------------------------------------------------------------------------------------------------
# Through the command line


@pytest.fixture
def begun(finetuned, command, tmp_path, monkeypatch):
    """A fine-tune interrupted after its first checkpoint; its directory."""

    def interrupted(self, *_):
        if self.state.global_step == 2:
            raise KeyboardInterrupt
        return original(self, *_)

    original = Trainer.training_step
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "training_step", interrupted)
        assert finetuned("--steps", 3)[0] == 130
    return tmp_path / "out.unfinished"


def tree(root):
    return {file: file.is_file() and file.read_bytes() for file in root.rglob("*")}


def sentence(err):
    lines = [line for line in err.replace("\r", "\n").splitlines() if line.strip() and "step/s" not in line]
    return lines[0] if len(lines) == 1 and lines[0].startswith("error: ") else None


def test_spoilt_or_another_runs_it_is_refused_and_restored_it_goes_on(finetuned, begun, tmp_path, monkeypatch, books):
    """Each of these once went on, exit status 0, to other losses."""
    shutil.copytree(begun, tmp_path / "kept")

    def restore():
        shutil.rmtree(begun)
        shutil.copytree(tmp_path / "kept", begun)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "train", lambda *_, **__: pytest.fail("trained"))
        for name in ("optimizer.pt", "scheduler.pt", checkpoint.MANIFEST):
            (begun / "checkpoint-2" / name).unlink()
            before = tree(tmp_path)
            status, _, err = finetuned("--steps", 3)
            assert status == 2 and name in sentence(err) and tree(tmp_path) == before
            restore()
        edited = tmp_path / "edited"
        shutil.copytree(books, edited)
        text = (edited / "one.txt").read_text()
        (edited / "one.txt").write_text("z" + text[1:])  # of the same size
        for change, key in ((["--method", "yarn"], "method"), (["--corpus", edited], "data"), (["--seed", 1], "seed")):
            status, _, err = finetuned("--steps", 3, *change)
            assert status == 2 and f"with {key} " in sentence(err) and str(begun) in err
    assert finetuned("--steps", 3)[0] == 0
    assert finetuned("--steps", 3, "--output", tmp_path / "whole", "--results", tmp_path / "others")[0] == 0
    found, whole = (json.loads((tmp_path / name / "training.json").read_text()) for name in ("out", "whole"))
    assert found["losses"] == whole["losses"] and not begun.exists()

    # A finished directory: training.json says what it is.
    for content in ("{", '{"method": "yarn"}', None):
        file = tmp_path / "out" / "training.json"
        file.unlink() if content is None else file.write_text(content)
        status, _, err = finetuned("--steps", 3)
        assert status == 2 and str(tmp_path / "out") in sentence(err)


def test_what_a_failed_run_left_without_a_checkpoint_is_no_hindrance(finetuned, tmp_path, monkeypatch):
    """And a file of another's there stays."""

    def failing(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "compute_loss", failing)
        status, _, err = finetuned("--steps", 1)
        last = err.splitlines(keepends=True)[-1]  # after notes of what was tried with less memory
        assert status == 2 and "out of memory" in sentence(last) and (tmp_path / "out.unfinished").is_dir()
    (tmp_path / "out.unfinished" / "notes.txt").write_text("mine")
    assert finetuned("--steps", 1, "--method", "yarn")[0] == 0
    assert [path.name for path in (tmp_path / "out.unfinished").iterdir()] == ["notes.txt"]
    assert json.loads((tmp_path / "out" / "training.json").read_text())["method"] == "yarn"
    # What a kill between the result's appearing and the end leaves, the next call removes.
    for left in ("tensorboard", "checkpoint-1"):  # a checkpoint without its manifest was being removed
        (tmp_path / "out.unfinished" / left).mkdir()
        assert finetuned("--steps", 1, "--method", "yarn")[0] == 0
        assert [path.name for path in (tmp_path / "out.unfinished").iterdir()] == ["notes.txt"]


def test_the_second_run_of_one_output_says_who_holds_it(finetuned, tmp_path):
    with files.lock(tmp_path / "out"):
        before = tree(tmp_path)
        status, _, err = finetuned("--steps", 1)
        assert status == 2 and str(os.getpid()) in sentence(err) and str(tmp_path / "out") in err
        assert tree(tmp_path) == before
