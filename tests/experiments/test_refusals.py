"""What a user can get wrong is one sentence and exit status 2, before any work, and leaves nothing
behind."""

import errno
import importlib
import io
import os
import shutil
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest
import torch
from safetensors import SafetensorError

import records
from experiments.kit import command_line
from tests import processes
from tests.conftest import sentence
from tests.experiments.written import PASSKEY
from tests.files import edit
from tests.models import checkpoint, fine_tuned


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A model of L = 128."""
    return checkpoint(tmp_path_factory.mktemp("good") / "model")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder of this test's own; records of a model of one's own go to `records` there."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(records, "OWN", tmp_path / "records")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(good, here):
    """A copy that can be broken."""
    return shutil.copytree(good, here / "model")


def tree(root):
    return {file: file.is_file() and file.stat().st_mtime_ns for file in root.rglob("*")}


@pytest.fixture
def refused(refusal, here):
    """refused("passkey …") -> the sentence; nothing may have been written."""

    def check(line, *arguments):
        before = tree(here)
        said = refusal(line, *arguments)
        assert tree(here) == before
        return said

    return check


LINES = """
    factor that adds no token: passkey --model {model} --method pi --factor 1.0001
    option without its method: passkey --model {model} --n-hat 4
    unknown task: longbench_e --model {model} --tasks nonesuch
    a stride too long: perplexity --model {model} --texts text.txt --lengths 64 --stride 64
    a window that predicts nothing: perplexity --model {model} --texts text.txt --lengths 1
    a file as a corpus: finetune --model {model} --method pi --corpus text.txt --output out
    a text shorter than the window: perplexity --model {model} --texts text.txt --lengths 4096
    a prompt that has no room: passkey --model {model} --lengths 100
    data without the benchmark: open_llm --model {model} --benchmarks folder
    a length that no machine measures: passkey --model {model} --lengths 100000000000000000000
    tables of nothing: tables.__main__ --results nowhere
    tables of an unset variable: tables.__main__ --results {unset}
    tolerance nan: verify folder --tolerance nan
    a value twice: extend --model {model} --method pi --factor 2 --factor 3
    a method's value twice: extend --model {model} --method dprope --n-hat 4 --n-hat 6
    a switch and its contrary: perplexity --model {model} --texts text.txt --bos --no-bos
    training's switch and its contrary: finetune --model {model} --checkpointing --no-checkpointing
    texts of two kinds: best --model {model} --texts text.txt plays:1
    texts of two packages: best --model {model} --texts plays:1 --texts parts:2
    more plays than there are: best --model {model} --texts plays:40
    plays without a number: best --model {model} --texts plays:all
    no plays: best --model {model} --texts plays:0
    texts of an unknown kind: best --model {model} --texts novels:3
    switches without a template: passkey --model {model} --chat-options a=1
    a switch without a value: passkey --model {model} --chat --chat-options thinking

    no text: perplexity --model {model} --lengths 64 --texts nowhere
    a text that is not UTF-8: perplexity --model {model} --lengths 64 --texts latin.txt
    an empty text: perplexity --model {model} --lengths 64 --texts empty.txt
    a table of no rows: best --model {model} --texts rows.parquet
    no rows to score: loss_by_position --model {model} --texts rows.parquet --method pi
    no rows to hide keys in: needles --model {model} --texts rows.parquet --method pi
    tokens for no window: perplexity --model {model} --lengths 64 --texts text.txt --tokens 9
    books of no record: perplexity --model {model} --books-of text.txt --texts plays:1
    two texts of one name: perplexity --model {model} --lengths 64 --texts text.txt folder/text.txt
    the same text twice: perplexity --model {model} --lengths 64 --texts text.txt copy.txt
    the same text twice to rank by: best --model {model} --texts text.txt copy.txt
    a text of an unset variable: perplexity --model {model} --lengths 64 --texts {unset}

    a model of an unset variable: passkey --model {unset}
    a model that has no name: passkey --model /
    a file as a model: passkey --model text.txt
    a GGUF file as a model: passkey --model model.gguf
    a model's name too long: passkey --model {long}

    records to a file: passkey --model {model} --results text.txt
    records below a file: passkey --model {model} --results text.txt/x
    records to a loop of links: passkey --model {model} --results loop
    records to an unset variable: passkey --model {model} --results {unset}
    a model to a file: extend --method pi --model {model} --output text.txt
    a model below a file: extend --method pi --model {model} --output text.txt/x
    a model to a loop of links: extend --method pi --model {model} --output loop
    a model to an unset variable: extend --method pi --model {model} --output {unset}
"""
ROWS = dict(line.strip().split(": ", 1) for line in LINES.splitlines() if line)


@pytest.mark.parametrize("kind", ROWS)
def test_a_command_line_that_cannot_be_meant(refused, good, here, kind):
    for name in ("text.txt", "copy.txt"):
        (here / name).write_text("All happy families are alike. " * 60)
    (here / "latin.txt").write_bytes("Ça va mal".encode("latin-1"))
    for file in ("empty.txt", "model.gguf"):
        (here / file).touch()
    rows = pyarrow.table({"text": pyarrow.array([], pyarrow.string())})
    pyarrow.parquet.write_table(rows, here / "rows.parquet")
    (here / "folder").mkdir()
    (here / "folder/text.txt").write_text("Another text.")
    (here / "loop").symlink_to(here / "loop")
    name, *words = ROWS[kind].split()
    refused(name, *(word.format(model=good, unset="", long="x" * 300) for word in words))


@pytest.mark.parametrize(
    "line, meant",
    [
        ("extend --model {model} --method dprobe", "dprope"),
        ("extend --model {model} --method dprope --n_hat=4", "--n-hat"),
        ("passkey --model tinny", "tiny"),
        ("tables.__main__ --model smolm2", "smollm2"),
        ("tables.__main__ paskey", "passkey"),
    ],
)
def test_what_was_meant(refused, good, line, meant):
    assert f"(did you mean '{meant}'?)" in refused(line.format(model=good))


# ------------------------------------------------------------------------------------------
# Broken models


class Evil:
    """What a pickle can do: it would write a file when it is loaded."""

    def __reduce__(self):
        return os.system, ("touch escaped",)


def pickled(model):
    (model / "model.safetensors").unlink()
    torch.save(Evil(), model / "pytorch_model.bin")


GPT2 = '{"model_type": "gpt2", "n_positions": 128}'
BROKEN = {
    "weights that run a program": pickled,
    "cut weights": lambda model: os.truncate(model / "model.safetensors", 5000),
    "a torn tokenizer": lambda model: (model / "tokenizer.json").write_text('{"version": '),
    "no length": lambda model: edit(model / "config.json", max_position_embeddings=None),
    "no RoPE": lambda model: (model / "config.json").write_text(GPT2),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_checkpoint(refused, model, here, kind):
    """tests/core/huggingface says what each sentence holds."""
    BROKEN[kind](model)
    said = refused(f"{PASSKEY} --method pi", "--model", model)
    assert "weights_only" not in said  # with which torch would run the program
    assert not (here / "escaped").exists()


def test_quantised_weights_are_not_fine_tuned(refused, model):
    edit(model / "config.json", quantization_config={"quant_method": "gptq"})
    on = "--corpus books --steps 1 --output out --results results"
    assert "quantised" in refused(f"finetune --method pi {on}", "--model", model)


@pytest.mark.parametrize("sha256", [{}, {"tensors": "another"}])
def test_training_json_of_other_weights(refused, model, sha256):
    fine_tuned(model)
    edit(model / "training.json", sha256=sha256)
    refused(PASSKEY, "--model", model)


# ------------------------------------------------------------------------------------------
# What the machine does to a run


@pytest.mark.parametrize(
    "error, says",
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "run the same command again; measured and kept: 1",
        ),
        (
            RuntimeError("[enforce fail at inline_container.cc] . unexpected pos 64 vs 0"),
            "no space left on the disk",
        ),
        (RuntimeError("basic_ios::clear: iostream error"), "no space left on the disk"),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:124] . can't allocate memory"),
            "out of memory",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "x"), "check that path"),
        (
            SafetensorError("Error while serializing: I/O error: File too large (os error 27)"),
            "no space left on the disk",
        ),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "no space left on the disk"),
    ],
)
def test_what_a_machine_does_to_a_run(refusal, good, monkeypatch, error, says):
    def fail(_, requests):
        yield requests[0].key, []
        raise error

    monkeypatch.setattr("eval.generation.generate", fail)
    assert says in refusal(PASSKEY, "--model", good)


def test_a_terminal_that_knows_ascii_only(good, monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    monkeypatch.setattr(
        sys, "argv", ["extend", "--model", str(good), "--method", "dprope", "--n-hat", "6"]
    )
    command_line.run(importlib.import_module("experiments.extend").main)
    assert b"\\u0302" in out.getvalue()  # of n̂


def test_a_path_that_the_locale_cannot_read(here):
    command = [sys.executable, "-m", "experiments.extend", "--model", f"{here}/é"]
    locale = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0"}
    refused = subprocess.run(
        command, cwd=records.ROOT, env=locale, capture_output=True, text=True, encoding="utf-8"
    )
    assert refused.returncode == 2
    assert "PYTHONUTF8=1" in sentence(refused.stderr)


def test_a_reader_that_has_seen_enough(good):
    read, write = os.pipe()
    os.close(read)

    def work():
        os.dup2(write, 1)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.argv = ["extend", "--model", str(good), "--method", "dprope", "--n-hat", "6"]
        command_line.run(importlib.import_module("experiments.extend").main)

    assert processes.wait(processes.fork(work)) == 141  # as of any program
    os.close(write)
