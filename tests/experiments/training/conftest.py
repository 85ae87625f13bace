"""A base model with something random in its training, text to train on, and the command line."""

import random

import pytest

from experiments.base_models.model import Training
from experiments.finetune import FineTune
from experiments.kit import processes
from tests.experiments.written import changed
from tests.files import read
from tests.models import checkpoint


def facts(folder):
    """What training.json says."""
    return read(folder / "training.json")


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """Dropout makes the loss depend on the random state; tied weights are the harder case under
    ZeRO-3."""
    directory = tmp_path_factory.mktemp("base") / "toy"
    return checkpoint(
        directory, attention_dropout=0.1, tie_word_embeddings=True, max_position_embeddings=32
    )


@pytest.fixture(scope="session")
def books(tmp_path_factory):
    """Two texts of random words."""
    folder = tmp_path_factory.mktemp("books")
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklm", k=rng.randint(2, 7))) for _ in range(50)]
    for title in ("one", "two"):
        (folder / f"{title}.txt").write_text(" ".join(rng.choices(words, k=800)))
    return folder


@pytest.fixture
def command(base, books, tmp_path, monkeypatch):
    """command("--steps", 3, …) -> the arguments of experiments.finetune on these, with settings
    for so small a model."""
    settings = Training(
        steps={2: 6},
        batch=4,
        device_batch=2,
        learning_rate=1e-2,
        checkpointing=False,
        save_every=2,
    )
    monkeypatch.setattr(FineTune, "default", settings)
    usual = (
        f"--model {base} --corpus {books} --method pi "
        f"--output {tmp_path}/out --results {tmp_path}/results"
    )

    def arguments(*more):
        return changed(usual.split(), more)

    return arguments


@pytest.fixture
def finetuned(command, call, monkeypatch):
    """finetuned("--steps", 3, …) -> (exit status, stdout, stderr)"""
    # however many GPUs there are
    monkeypatch.setattr(processes, "expected", lambda: processes.rank()[1])

    def run(*more, arguments=None):
        return call("finetune", *(arguments or command(*more)))

    return run
