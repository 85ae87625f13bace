"""Killed at any moment and given again, every command ends in the same files and leaves nothing else behind."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from experiments.kit.records import RESULTS
from tests import processes
from tests.models import checkpoint

KILLS = 5  # of each command
UNLIKE = ("seconds", "environment", "tokens_per_second", "seconds_per_step")  # what no two runs share


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    root = tmp_path_factory.mktemp("inputs")
    (root / "books").mkdir()
    words = random.Random(0).choices(
        ["all", "happy", "families", "are", "alike", "each", "unhappy", "one", "in", "its", "own", "way"], k=3000
    )
    (root / "books" / "text.txt").write_text(" ".join(words))
    records_of_tiny = root / "kept" / "results"
    (records_of_tiny / "tiny").mkdir(parents=True)
    for name in ("model.json", "perplexity", "passkey"):
        (records_of_tiny / "tiny" / name).symlink_to(RESULTS / "tiny" / name)
    return {"model": checkpoint(root / "model", max_position_embeddings=128), "books": root / "books",
            "tiny": records_of_tiny}  # fmt: skip


COMMANDS = {
    "evaluation": "experiments.perplexity --model {model} --text {books}/text.txt --lengths 64 128 --stride 8 "
    "--tokens 500 --results {out}/results --method yarn pi",
    "fine-tune": "experiments.finetune --model {model} --data {books} --steps 6 --batch 2 --save-every 2 "
    "--method pi --output {out}/checkpoint --results {out}/results",
    "export": "experiments.extend --model {model} --output {out}/export",
    "rerun": "experiments.rerun --model {model} --books {books} --experiments perplexity passkey "
    "--methods pi yarn --workers 2 --output {out}/build --results {out}/results",
    "rendering": "tables.__main__ --results {out}/results",
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_killed_at_random_moments(forked, kind, inputs, tmp_path):
    rng = random.Random(kind)

    def start(out):
        if kind == "rendering" and not out.exists():
            out.mkdir()
            (out / "results").symlink_to(inputs["tiny"])
        line = COMMANDS[kind].format(out=out, **inputs).split()
        return processes.command(*line, environment={"OMP_NUM_THREADS": "1"})

    started = time.monotonic()
    assert processes.barrier(start(tmp_path / "whole")) == 0
    whole = time.monotonic() - started
    for _ in range(KILLS):
        child = start(tmp_path / "killed")
        time.sleep(rng.uniform(0, whole))
        os.kill(child, signal.SIGKILL)
        assert processes.barrier(child) in (0, -signal.SIGKILL)
        if kind == "export" and (tmp_path / "killed" / "export").exists():  # it was over before
            (tmp_path / "killed" / ".export.lock").unlink(missing_ok=True)  # of a process killed at its very last step
            assert tree(tmp_path / "killed") == tree(tmp_path / "whole")
            (tmp_path / "killed" / "export").rename(tmp_path / f"done-{_}")
    assert processes.barrier(start(tmp_path / "killed")) == 0
    assert tree(tmp_path / "killed") == tree(tmp_path / "whole")


def tree(root: Path) -> dict:
    """Every file's content, but for what says how long it took; of TensorBoard's logs and journals, that they are."""
    found = {}
    for file in sorted(file for file in root.rglob("*") if file.is_file()):
        name = str(file.relative_to(root))
        if "tensorboard" in name or "runs" in file.parts or file.suffix == ".log":
            continue
        is_record = (file.suffix == ".json" and "results" in file.parts) or file.name == "training.json"
        found[name] = _lasting(json.loads(file.read_text())) if is_record else file.read_bytes()
    return found


def _lasting(record: dict) -> dict:
    kept = {key: value for key, value in record.items() if key not in UNLIKE}
    return {key: _lasting(value) if isinstance(value, dict) else value for key, value in kept.items()}
