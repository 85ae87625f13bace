"""Pre-training through its command line: a kill costs nothing, and what comes out is a stock checkpoint."""

import os
import shutil
import signal
import sys
import time

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from core import files
from core.errors import InputError
from experiments.kit import journal
from tests.processes import fork, wait
from tools.tiny import pretrain

SENTENCES = "The ship left the harbour at noon. Nobody knew its name! Where had it come from? "


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    folder = tmp_path_factory.mktemp("books")
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"Book {number}. " + SENTENCES * 100)
    return folder


def command(books, folder):
    options = {"--model": "smoke", "--data": books, "--work": folder / "work", "--output": folder / "model"}
    return [str(part) for option in options.items() for part in option] + ["--threads", "1"]


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


@pytest.mark.parametrize("held", ["work", "model"])
def test_the_second_training_of_one_place_says_who_holds_it(call, books, tmp_path, held):
    with files.lock(tmp_path / held):
        status, _, err = call("tools.tiny.pretrain", *command(books, tmp_path))
    assert status == 2 and len(err.splitlines()) == 1 and str(os.getpid()) in err and str(tmp_path / held) in err
    assert not list(tmp_path.rglob("checkpoint-*")) and not (tmp_path / "model").exists()


def test_the_last_checkpoint_is_exported_whole_and_over_nothing(call, books, whole, tmp_path):
    work = shutil.copytree(whole[0] / "work", tmp_path / "work")
    options = ["--model", "smoke", "--export", "--work", work, "--output", tmp_path / "model"]
    (tmp_path / "model").mkdir()
    status, _, err = call("tools.tiny.pretrain", *options)
    assert status == 2 and len(err.splitlines()) == 1 and str(tmp_path / "model") in err
    (tmp_path / "model").rmdir()
    assert call("tools.tiny.pretrain", *options)[0] == 0
    found = AutoModelForCausalLM.from_pretrained(tmp_path / "model").state_dict()
    assert all(torch.equal(whole[1][name], found[name]) for name in found)
    (work / "checkpoint-10" / "config.json").write_text("{}")
    shutil.rmtree(tmp_path / "model")
    status, _, err = call("tools.tiny.pretrain", *options)
    assert status == 2 and "config.json" in err and not (tmp_path / "model").exists()


def test_the_result_is_a_stock_checkpoint_in_bfloat16(whole):
    folder, weights = whole
    assert {tensor.dtype for tensor in weights.values()} == {torch.bfloat16}
    model, tokenizer = (kind.from_pretrained(folder / "model") for kind in (AutoModelForCausalLM, AutoTokenizer))
    assert model.config.architectures == ["LlamaForCausalLM"]
    assert model.config.max_position_embeddings == 320 and model.config.eos_token_id == tokenizer.eos_token_id
    text = "Naïve café, 12 €.\n\n\tEnd"
    assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_an_unknown_scale_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pretrain", "--model", "huge"])
    with pytest.raises(InputError, match="no recipe for a model 'huge'"):
        pretrain.main()
