"""What a user can get wrong is one sentence and exit status 2, before any work, and leaves nothing
behind.

Each group is a table; a row is a name and a command line, in which {braces} name what `places`
prepares.
"""

import errno
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from experiments.kit import command_line, records
from tests import processes
from tests.models import checkpoint, fine_tuned

NO_TENSOR = "model.layers.1.mlp.up_proj.weight"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Good inputs, and bad ones made of them."""
    root = tmp_path_factory.mktemp("places")
    model = checkpoint(root / "model", max_position_embeddings=128)
    (root / "text.txt").write_text("All happy families are alike. " * 60)
    paths = {"model": model, "text": root / "text.txt", "root": root, "nowhere": root / "nowhere"}

    def variant(name, files=None, weights=None):
        paths[name] = folder = shutil.copytree(model, root / name)
        for file, content in (files or {}).items():
            (folder / file).write_bytes(content)
        if weights:
            tensors = load_file(model / "model.safetensors")
            weights(tensors)
            save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    variant("missing", weights=lambda tensors: tensors.pop(NO_TENSOR))
    variant(
        "reshaped",
        weights=lambda tensors: tensors.update({NO_TENSOR: tensors[NO_TENSOR][:-1].clone()}),
    )
    variant("bad_tokenizer", {"tokenizer.json": b'{"version": '})
    variant("no_configuration", {"config.json": b"{"})
    variant(
        "gpt2", {"config.json": json.dumps({"model_type": "gpt2", "n_positions": 128}).encode()}
    )
    variant("pickled")
    (paths["pickled"] / "model.safetensors").unlink()
    torch.save(Evil(), paths["pickled"] / "pytorch_model.bin")
    for name, content in {"latin": "Ça va mal".encode("latin-1") * 9, "empty": b""}.items():
        (root / f"{name}.txt").write_bytes(content)
        paths[name] = root / f"{name}.txt"
    (root / "model.gguf").touch()
    (root / "again").mkdir()
    (root / "again" / "text.txt").write_text("Another text.")
    (root / "loop").symlink_to(root / "loop")
    paths |= {"again": root / "again/text.txt", "loop": root / "loop", "gguf": root / "model.gguf"}
    paths["long"] = root / ("x" * 300)
    return paths


class Evil:
    """What a pickle can do: it would write a file when it is loaded."""

    def __reduce__(self):
        return os.system, ("touch escaped",)


@pytest.fixture
def refused(call, places, tmp_path, monkeypatch):
    """refused("passkey --model {model} …"): status 2, one sentence, nothing written, no weights
    scored."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)

    def check(line, **more):
        known = {
            **places,
            "tmp": tmp_path,
            "out": tmp_path / "out",
            "results": tmp_path / "results",
            **more,
        }
        name, *arguments = (word.format(**known) for word in line.split())
        before = tree(tmp_path, places["root"])
        status, _, err = call(name, *arguments)
        assert status == 2, err
        assert one_sentence(err), err
        assert tree(tmp_path, places["root"]) == before
        return err

    return check


def one_sentence(err):
    """Whether this is an error in one line, progress aside."""
    said = err.replace("\r", "\n").splitlines()
    lines = [
        line for line in said if line.strip() and "it/s]" not in line and " sample" not in line
    ]
    return len(lines) == 1 and lines[0].startswith("error: ")


def tree(*roots):
    return {
        file: file.is_file() and file.stat().st_mtime_ns
        for root in roots
        for file in root.rglob("*")
    }


def rows(text):
    return [
        pytest.param(line.split(": ", 1)[1], id=line.split(": ", 1)[0].strip())
        for line in text.strip().splitlines()
    ]


PASSKEY = "passkey --results {results} --depths 1 --keys 1 --lengths 400"
SCORE = "perplexity --results {results} --texts {text} --lengths 64 --stride 32 --model"


@pytest.mark.parametrize("name", ["missing", "reshaped", "bad_tokenizer", "pickled"])
def test_weights_that_do_not_fit(refused, name):
    assert "weights_only" not in refused(f"{SCORE} {{{name}}}")
    assert not Path("escaped").exists()


@pytest.mark.parametrize(
    "line",
    rows("""
    factor that adds no token: passkey --model {model} --method pi --factor 1.0001
    option without its method: passkey --model {model} --n-hat 4
    unknown task: longbench_e --model {model} --tasks nonesuch
    a stride too long: perplexity --model {model} --texts {text} --lengths 64 --stride 64
    a text shorter than the window: perplexity --model {model} --texts {text} --lengths 4096
    a prompt that has no room: passkey --model {model} --lengths 100
    data without the benchmark: open_llm --model {model} --benchmarks {root}
    the same length twice: ruler --model {model} --lengths 64 64
    a length that no machine measures: passkey --model {model} --lengths 100000000000000000000
    tables of nothing: tables.__main__ --results {nowhere}
    tables of an unset variable: tables.__main__ --results {nothing}
    tolerance nan: verify {root} --tolerance nan
"""),
)
def test_arguments(refused, line):
    name = line.split()[0]
    measures = name != "verify" and "." not in name
    refused(line + (" --results {results}" if measures else ""), nothing="")


@pytest.mark.parametrize(
    "line",
    rows("""
    dprope: extend --model {model} --method dprobe
    tiny: passkey --model tinny
    smollm2: tables.__main__ --model smolm2
    passkey: tables.__main__ paskey
"""),
)
def test_what_was_meant(refused, line, request):
    assert f"(did you mean '{request.node.callspec.id}'?)" in refused(line)


@pytest.mark.parametrize(
    "line",
    rows("""
    not there: {nowhere}
    not UTF-8: {latin}
    empty: {empty}
    two of one name: {text} {again}
    an unset variable: {nothing}
"""),
)
def test_texts(refused, line):
    refused(
        f"perplexity --model {{model}} --lengths 64 --results {{results}} --texts {line}",
        nothing="",
    )


@pytest.mark.parametrize(
    "line",
    rows("""
    empty: {nothing}
    root: /
    a file: {text}
    a GGUF file: {gguf}
    a name too long: {long}
    without RoPE: {gpt2}
    no configuration: {no_configuration}
"""),
)
def test_models(refused, line):
    refused(f"passkey --results {{results}} --model {line}", nothing="")


@pytest.mark.parametrize(
    "line",
    rows("""
    a file: {text}
    below a file: {text}/x
    a loop of links: {loop}
    empty: {nothing}
"""),
)
@pytest.mark.parametrize(
    "command", ["passkey --model {model} --results", "extend --model {model} --output"]
)
def test_places_to_write_to(refused, command, line):
    refused(f"{command} {line}", nothing="")


@pytest.mark.parametrize(
    "change",
    [
        {"scale": "../../../escaped"},
        {"method": None},
        {"factor": -2.0},
        {"seed": -1},
        {"sha256": {}},
        [],
    ],
    ids=str,
)
def test_training_json_of_no_fine_tune_or_of_other_weights(refused, places, tmp_path, change):
    folder = shutil.copytree(places["model"], tmp_path / "tuned")
    facts = fine_tuned(folder)
    (folder / "training.json").write_text(json.dumps(change and facts | change))
    refused(PASSKEY + " --model {tmp}/tuned")


def test_records_that_are_torn(refused, tmp_path):
    file = tmp_path / "results" / "model" / "passkey" / "pi_s=2.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"torn": ')
    assert str(file) in refused(PASSKEY + " --model {model} --method pi")
    file.rename(file.parents[1] / records.MODEL)
    assert records.MODEL in refused(PASSKEY + " --model {model} --method pi")


# ------------------------------------------------------------------------------------------
# What the machine does to a run


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "run the same command again; 0 parts are kept",
        ),
        (
            RuntimeError("[enforce fail at inline_container.cc] . unexpected pos 64 vs 0"),
            "no space left on the disk",
        ),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:124] . can't allocate memory"),
            "out of memory",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "x"), "check that path"),
    ],
)
def test_what_a_machine_does_to_a_run(call, places, tmp_path, monkeypatch, error, says):
    monkeypatch.setattr("eval.generation.generate", lambda *_: (_ for _ in ()).throw(error))
    line = PASSKEY.format(results=tmp_path / "results").split()
    status, _, err = call(*line, "--model", places["model"])
    last = err.splitlines()[-1]
    assert status == 2 and last.startswith("error: ") and says in last and "Traceback" not in err


def test_a_terminal_that_knows_ascii_only(places, monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    monkeypatch.setattr(sys, "argv", ["extend", "--model", str(places["model"]), "--n-hat", "6"])
    command_line.run(importlib.import_module("experiments.extend").main)
    assert b"\\u0302" in out.getvalue()  # of n̂


def test_a_path_that_the_locale_cannot_read(places):
    command = [sys.executable, "-m", "experiments.extend", "--model", f"{places['nowhere']}é"]
    locale = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0"}
    refused = subprocess.run(
        command, cwd=records.ROOT, env=locale, capture_output=True, text=True, encoding="utf-8"
    )
    assert refused.returncode == 2 and one_sentence(refused.stderr), refused.stderr
    assert "PYTHONUTF8=1" in refused.stderr


def test_a_reader_that_has_seen_enough(places):
    read, write = os.pipe()
    os.close(read)

    def work():
        os.dup2(write, 1)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.argv = ["extend", "--model", str(places["model"])]
        command_line.run(importlib.import_module("experiments.extend").main)

    assert processes.wait(processes.fork(work)) == 0
    os.close(write)
