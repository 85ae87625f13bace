"""A chain that is killed and given again ends in the records of an undisturbed run and leaves nothing else behind."""

import os
import random
import signal
import time

from experiments import passkey, perplexity
from experiments.kit import records
from tests import processes
from tests.models import checkpoint

MOMENT = 0.6  # of an undisturbed run's time
LOADED = passkey, perplexity  # before a process is copied, which saves each of them the imports
UNLIKE = "seconds", "environment"  # what no two runs share
COMMAND = (
    "experiments.rerun --model {root}/model --texts {root} --experiments perplexity passkey --methods dprope "
    "--chain 1 --output {root}/{name}/build --results {root}/{name}/results"
)


def test_killed_and_given_again_it_ends_in_the_same_records(tmp_path):
    words = ["all", "happy", "families", "are", "alike", "each", "unhappy", "one", "in", "its", "own", "way"]
    (tmp_path / "text.txt").write_text(" ".join(random.Random(0).choices(words, k=1500)))
    checkpoint(tmp_path / "model", max_position_embeddings=256)

    def start(name):
        return processes.command(*COMMAND.format(root=tmp_path, name=name).split())

    def written(name):
        """By path, every record but for what says how long it took; there is nothing else but journals."""
        files = {file.relative_to(tmp_path / name): file for file in (tmp_path / name).rglob("*") if file.is_file()}
        return {
            path: {key: value for key, value in records.read(file).items() if key not in UNLIKE}
            for path, file in files.items()
            if path.parts[0] != "runs"
        }

    started = time.monotonic()
    assert processes.wait(start("whole")) == 0
    whole = time.monotonic() - started
    child = start("killed")
    time.sleep(MOMENT * whole)
    os.kill(child, signal.SIGKILL)
    assert processes.wait(child) in (0, -signal.SIGKILL)
    assert processes.wait(start("killed")) == 0
    assert written("killed") == written("whole")
    assert {path.stem for path in written("whole")} == {"model", "dprope_n-hat=10_s=2"}  # 5/8 of d = 16
