"""Pre-training through its command line: a kill costs nothing, and what comes out is a stock checkpoint."""

import os
import shutil
import signal
import sys
import time

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from experiments.kit import journal
from tests.processes import fork, wait
from tools.tiny import pretrain
from tools.tiny.curriculum import Stage
from tools.tiny.recipe import TINY, Recipe

SMOKE = Recipe(
    {
        "vocab_size": 300, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 2, "head_dim": 32, "max_position_embeddings": 320, "initializer_range": 0.05,
        "rope_parameters": {"rope_type": "default", "rope_theta": 300.0},
    },
    stages=tuple(
        Stage(length, tokens, 4 * length, 1, TINY.stages[1].mixture)
        for length, tokens in ((256, 5120), (320, 6400))
    ),
    training=TINY.training | {"warmup_steps": 2, "save_steps": 4, "logging_steps": 1},
    looking_back=1, decay=0.35, held_out=2, score_every=5,
)  # fmt: skip
SENTENCES = "The ship left the harbour at noon. Nobody knew its name! Where had it come from? "


@pytest.fixture(scope="module", autouse=True)
def smoke():
    """A recipe of ten steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretrain, "TINY", SMOKE)
        yield


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    folder = tmp_path_factory.mktemp("books")
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"Book {number}. " + SENTENCES * 100)
    return folder


def command(books, folder):
    options = {"--corpus": books, "--work": folder / "work", "--output": folder / "model"}
    return [str(part) for option in options.items() for part in option]


def train(books, folder, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pretrain", *command(books, folder)])
    pretrain.main()
    return AutoModelForCausalLM.from_pretrained(folder / "model").state_dict()


@pytest.fixture(scope="module")
def whole(books, tmp_path_factory):
    """(folder, weights) of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        return folder, train(books, folder, patch)


def losses(folder):
    entries = journal.read(folder / "work" / "journal.jsonl")
    return {key: value["loss"] for key, value in entries.items() if key.startswith("step")}


def test_a_run_killed_at_a_checkpoint_goes_on_as_if_it_had_not_been(books, whole, tmp_path, monkeypatch, capsys):
    killed, expected = tmp_path / "killed", whole[1]
    process = fork(lambda: train(books, killed, monkeypatch))
    deadline = time.monotonic() + 120
    while not (killed / "work" / "checkpoint-4").exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    assert wait(process) == -signal.SIGKILL
    assert not (killed / "model").exists()

    found = train(books, killed, monkeypatch)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert losses(whole[0]) == losses(killed) and len(losses(killed)) == 10
    capsys.readouterr()
    train(books, killed, monkeypatch)
    assert "done already" in capsys.readouterr().out


@pytest.mark.parametrize(
    "spoil, more, named",
    [
        (lambda newest: (newest / "scheduler.pt").unlink(), [], "scheduler.pt"),
        (lambda newest: None, ["--seed", 1], "seed"),
    ],
)
def test_a_checkpoint_that_is_not_whole_or_anothers_is_refused(call, books, whole, tmp_path, spoil, more, named):
    shutil.copytree(whole[0] / "work", tmp_path / "work")
    spoil(tmp_path / "work" / "checkpoint-10")
    status, _, err = call("tools.tiny.pretrain", *command(books, tmp_path), *more)
    assert status == 2 and len(err.splitlines()) == 1 and named in err and str(tmp_path / "work") in err
    assert not (tmp_path / "model").exists() and (tmp_path / "work" / "checkpoint-10").is_dir()


def test_the_result_is_a_stock_checkpoint_in_bfloat16(whole):
    folder, weights = whole
    assert {tensor.dtype for tensor in weights.values()} == {torch.bfloat16}
    model, tokenizer = (kind.from_pretrained(folder / "model") for kind in (AutoModelForCausalLM, AutoTokenizer))
    assert model.config.architectures == ["LlamaForCausalLM"]
    assert model.config.max_position_embeddings == 320 and model.config.eos_token_id == tokenizer.eos_token_id
    text = "Naïve café, 12 €.\n\n\tEnd"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
