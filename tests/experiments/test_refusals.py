"""What a user can get wrong is one sentence and exit status 2, before any work, and leaves nothing behind.

Each group is a table; a row is a name and a command line, in which {braces} name what `places` prepares.
"""

import importlib
import io
import json
import os
import resource
import signal
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from experiments.kit import command_line, records
from experiments.kit.records import ROOT
from tests import processes
from tests.models import checkpoint

NO_TENSOR = "model.layers.1.mlp.up_proj.weight"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Good inputs, and bad ones made of them."""
    root = tmp_path_factory.mktemp("places")
    model = checkpoint(root / "model", max_position_embeddings=128)
    (root / "text.txt").write_text("All happy families are alike. " * 60)
    found = {"model": model, "text": root / "text.txt", "root": root, "nowhere": root / "nowhere"}

    def variant(name, files=None, weights=None, **config):
        folder = root / name
        folder.mkdir()
        for file in model.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        for file, content in (files or {}).items():
            (folder / file).write_bytes(content)
        if config:
            stated = json.loads((folder / "config.json").read_text()) | config
            (folder / "config.json").write_text(json.dumps(stated))
        if weights:
            tensors = load_file(model / "model.safetensors")
            weights(tensors)
            save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        found[name] = folder

    variant("missing", weights=lambda tensors: tensors.pop(NO_TENSOR))
    variant("misnamed", weights=lambda tensors: tensors.update(other=tensors.pop(NO_TENSOR)))
    variant("unexpected", weights=lambda tensors: tensors.update(other=torch.zeros(2)))
    variant("reshaped", weights=lambda tensors: tensors.update({NO_TENSOR: tensors[NO_TENSOR][:-1].clone()}))
    whole = (model / "model.safetensors").read_bytes()
    variant("truncated", {"model.safetensors": whole[: len(whole) // 2]})
    variant("void", {"model.safetensors": b""})
    variant("garbage", {"model.safetensors": bytes(range(256)) * 64})
    variant("bad_tokenizer", {"tokenizer.json": b'{"version": '})
    variant("null_tokenizer", {"tokenizer.json": b"null", "tokenizer_config.json": b"null"})
    variant("no_json", {"config.json": b"{"})
    variant("list_config", {"config.json": b"[]"})
    variant("null_config", {"config.json": b"null"})
    variant("deep_config", {"config.json": b'{"a":' * 5000 + b"1" + b"}" * 5000})
    variant("binary_config", {"config.json": bytes(range(128, 256))})
    for key, values in {
        "rope_theta": [0, "ten", None, -1.0, 1e400],
        "max_position_embeddings": ["long", -5, 0, 1.5, None],
        "hidden_size": ["x", 0, None, 63],
        "head_dim": [15, -2, "x", 0],
        "num_attention_heads": [0, None, "four"],
        "num_hidden_layers": ["two", -1],
        "model_type": ["nonesuch", None, 7],
        "vocab_size": ["x", -1],
    }.items():
        for number, value in enumerate(values):
            change = {"rope_parameters": {"rope_type": "default", key: value}} if key == "rope_theta" else {key: value}
            variant(f"{key}_{number}", **change)
    pickled = {"model.bin": b""}
    variant("pickled", pickled)
    (found["pickled"] / "model.safetensors").unlink()
    (found["pickled"] / "model.bin").unlink()
    torch.save(Evil(), found["pickled"] / "pytorch_model.bin")
    (root / "tiny").symlink_to(model)
    found["tiny"] = root / "tiny"
    for name, content in {
        "latin": "Ça va mal".encode("latin-1") * 9,
        "empty": b"",
        "blank": b" \n\t",
    }.items():
        (root / f"{name}.txt").write_bytes(content)
        found[name] = root / f"{name}.txt"
    (root / "folder.txt").mkdir()
    (root / "again").mkdir()
    (root / "again" / "text.txt").write_text("Another text.")
    (root / "loop").symlink_to(root / "loop")
    (root / "dangling").symlink_to(root / "gone")
    found |= {"folder": root / "folder.txt", "again": root / "again/text.txt", "loop": root / "loop"}
    found |= {"dangling": root / "dangling", "long": root / ("x" * 300)}
    return found


class Evil:
    """What a pickle can do: it would write a file when it is loaded."""

    def __reduce__(self):
        return os.system, ("touch escaped",)


@pytest.fixture
def refused(call, places, tmp_path, monkeypatch):
    """refused("passkey --model {model} …"): status 2, one sentence, nothing written, no weights scored."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)

    def check(line, **more):
        known = {**places, "tmp": tmp_path, "out": tmp_path / "out", "results": tmp_path / "results", **more}
        name, *arguments = (word.format(**known) for word in line.split())
        before = tree(tmp_path, places["root"])
        status, _, err = call(name, *arguments)
        assert status == 2, err
        assert one_sentence(err), err
        assert tree(tmp_path, places["root"]) == before
        return err

    return check


def one_sentence(err):
    """Whether this is an error in one line, progress bars aside."""
    lines = [line for line in err.replace("\r", "\n").splitlines() if line.strip() and "it/s]" not in line]
    return len(lines) == 1 and lines[0].startswith("error: ")


def tree(*roots):
    return {file: file.is_file() and file.stat().st_mtime_ns for root in roots for file in root.rglob("*")}


def rows(text):
    return [
        pytest.param(line.split(": ", 1)[1], id=line.split(": ", 1)[0].strip()) for line in text.strip().splitlines()
    ]


PASSKEY = "passkey --results {results} --depths 1 --keys 1 --lengths 400"
SCORE = "perplexity --results {results} --text {text} --lengths 64 --stride 32 --model"


@pytest.mark.parametrize("name", ["missing", "misnamed", "unexpected", "reshaped", "truncated", "void", "garbage",
                                  "bad_tokenizer", "null_tokenizer", "pickled"])  # fmt: skip
def test_weights_that_do_not_fit(refused, name):
    refused(f"{SCORE} {{{name}}}")
    refused(f"generate --model {{{name}}} --prompt x")
    assert not Path("escaped").exists()


@pytest.mark.parametrize("kind", ["rope_theta", "max_position_embeddings", "hidden_size", "head_dim",
                                  "num_attention_heads", "num_hidden_layers", "model_type", "vocab_size",
                                  ""])  # fmt: skip
def test_configurations_that_describe_no_model(refused, places, kind):
    others = ("no_json", "list_config", "null_config", "deep_config", "binary_config")
    for name in [name for name in places if (kind and name.startswith(f"{kind}_")) or (not kind and name in others)]:
        refused(f"{SCORE} {{{name}}}")


@pytest.mark.parametrize("line", rows("""
    no method: passkey --model {model} --method nonesuch
    no model: passkey --model nonesuch
    factor nan: passkey --model {model} --method pi --factor nan
    factor inf: passkey --model {model} --method pi --factor inf
    factor 0: passkey --model {model} --method pi --factor 0
    factor text: passkey --model {model} --method pi --factor two
    factor that adds no token: passkey --model {model} --method pi --factor 1.0001
    threshold nan: passkey --model {model} --method dprope --threshold nan
    n-hat too large: passkey --model {model} --method dprope --n-hat 1000
    no keys: passkey --model {model} --keys 0
    depths below 1: passkey --model {model} --depths -3
    lengths below 1: passkey --model {model} --lengths 64 0
    limit 0: longbench_e --model {model} --limit 0
    limit -1: open_llm --model {model} --limit -1
    tokens below 1: perplexity --model {model} --text {text} --tokens -29000
    steps 0: finetune --model {model} --steps 0
    steps -1: finetune --model {model} --steps -1
    learning rate nan: finetune --model {model} --steps 1 --learning-rate nan
    learning rate -1: finetune --model {model} --steps 1 --learning-rate -1
    learning rate inf: finetune --model {model} --steps 1 --learning-rate inf
    seed -1: finetune --model {model} --steps 1 --seed -1
    seed too large: finetune --model {model} --steps 1 --seed 99999999999
    seed of samples: tools.tiny.miniature.write --model {model} --output {out} --seed -1
    batch 0: finetune --model {model} --steps 1 --batch 0
    length 1: finetune --model {model} --steps 1 --length 1
    no such option: passkey --model {model} --nonesuch
    unknown task: longbench_e --model {model} --tasks nonesuch
    unknown length: ruler --model {model} --lengths long
    repeats 0: time_cost --model {model} --method pi --repeats 0
    precision 0: time_cost --model {model} --method pi --precision 0
    no PI to compare with: time_cost --model {model} --method yarn
    a stride as long as the window: perplexity --model {model} --text {text} --lengths 64 --stride 64
    two strides for one window: perplexity --model {model} --text {text} --lengths 64 --stride 8 8
    a text shorter than the window: perplexity --model {model} --text {text} --lengths 4096
    a prompt that has no room: passkey --model {model} --lengths 100
    data that is not there: open_llm --model {model} --data {nowhere}
    shots below 0: open_llm --model {model} --shots -1
    the same length twice: ruler --model {model} --lengths 64 64
    pairs that the model has not: angle_distribution --model {model} --pairs 64
    experiments by no name: rerun --model tiny --output {out} --experiments nonesuch
    benchmarks that are not there: rerun --model tiny --output {out} --benchmarks {nowhere}
    books that are not there: rerun --model tiny --output {out} --books {nowhere}
    corpus that is not there: rerun --model tiny --output {out} --corpus {nowhere}
    methods by no name: rerun --model tiny --output {out} --methods nonesuch
    tables of nothing: tables.__main__ --results {nowhere}
    figures of nothing: figures.__main__ --results {nowhere}
    report of nothing: report.__main__ --results {nowhere}
    pages of nothing: report.pages --results {nowhere}
    tolerance nan: verify {root} --tolerance nan
    nothing to verify: verify {nowhere}
"""))  # fmt: skip
def test_arguments(refused, line):
    name = line.split()[0]
    measures = name not in ("rerun", "verify") and "." not in name
    refused(line + (" --results {results}" if measures else ""))


@pytest.mark.parametrize("line", rows("""
    not there: {nowhere}
    a directory: {folder}
    not UTF-8: {latin}
    empty: {empty}
    blank: {blank}
    a loop of links: {loop}
    a link to nothing: {dangling}
    a name too long: {long}
    two of one name: {text} {again}
"""))  # fmt: skip
def test_texts(refused, line):
    refused("perplexity --model {model} --lengths 64 --results {results} --text " + line)
    if "{again}" not in line:
        refused("generate --model {model} --prompt-file " + line)


@pytest.mark.parametrize("line", rows("""
    empty: {nothing}
    this directory: .
    its parent: ..
    root: /
    not there: {nowhere}
    a file: {text}
    a loop of links: {loop}
    a name too long: {long}
"""))  # fmt: skip
def test_models(refused, line):
    refused(f"passkey --results {{results}} --model {line}", nothing="")


@pytest.mark.parametrize("line", rows("""
    a file: {text}
    below a file: {text}/below
    a loop of links: {loop}
    a link to nothing: {dangling}
    below a link to nothing: {dangling}/below
    a name too long: {long}
"""))  # fmt: skip
@pytest.mark.parametrize("command", ["passkey --model {model} --results", "finetune --model {model} --steps 1 --output",
                                     "extend --model {model} --output", "rerun --model tiny --output",
                                     "disturbance --model tiny --results", "report.__main__ --output"])  # fmt: skip
def test_places_to_write_to(refused, command, line):
    refused(f"{command} {line}")


def test_results_that_cannot_be_written_to_are_found_before_any_work(refused, places, tmp_path, monkeypatch):
    results = tmp_path / "results"
    results.mkdir()
    if os.geteuid():
        results.chmod(0o500)
    else:  # root writes anywhere but on a read-only file system
        monkeypatch.setattr(
            "tempfile.TemporaryFile", lambda **_: (_ for _ in ()).throw(OSError(30, "Read-only file system"))
        )
    monkeypatch.setattr("experiments.kit.load_model.load", lambda *_: pytest.fail("worked before looking"))
    refused(PASSKEY + " --model {model}")
    refused("finetune --model {model} --steps 1 --results {results} --output {out}")


TRAINING = {"scale": "toy", "method": "pi", "factor": 2, "options": {}, "seed": 0, "steps": 1, "length": 256,
            "identity": "a", "model": {"sha256": {}}, "data_facts": {"books": []}}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"scale": "../../../escaped"}, {"scale": ".."}, {"scale": "/tmp/escaped"}, {"scale": None},
        {"scale": "x" * 300},
        {"method": "../../escaped"}, {"method": 3}, {"seed": "../../escaped"}, {"seed": None}, {"factor": "2"},
        {"factor": True}, {"options": []}, {"model": "base"}, "{", "[]", "null", '{"scale": NaN}',
    ],
    ids=str,
)  # fmt: skip
def test_training_json_of_no_fine_tune(refused, places, tmp_path, change):
    folder = tmp_path / "tuned"
    folder.mkdir()
    for file in places["model"].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "training.json").write_text(change if isinstance(change, str) else json.dumps(TRAINING | change))
    refused(PASSKEY + " --model {tmp}/tuned")


def test_another_model_or_other_settings_never_replace_what_a_clone_holds(refused, places, tmp_path):
    committed = tmp_path / "results" / "tiny"
    (committed / "passkey").mkdir(parents=True)
    for name in (records.MODEL, "passkey/pi_s=2.json"):
        (committed / name).write_bytes((ROOT / "results" / "tiny" / name).read_bytes())
    refused(PASSKEY + " --model {tiny}")
    refused(PASSKEY + " --model {tiny} --method pi")
    refused("passkey --model tiny --method pi --results {results} --lengths 640")


@pytest.mark.parametrize("content", ['{"torn": ', "[]", '{"identity": NaN}', "\x00\x01", ""])
def test_records_that_are_torn(refused, places, tmp_path, content):
    file = tmp_path / "results" / "model" / "passkey" / "pi_s=2.json"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    assert str(file) in refused(PASSKEY + " --model {model} --method pi")
    file.rename(file.parents[1] / records.MODEL)
    assert records.MODEL in refused(PASSKEY + " --model {model} --method pi")


@pytest.mark.parametrize("line", ["garbage", '{"an": "object"}', '["one"]', '["one", ', "[[], 1]", "\x00"])
def test_journals_that_hold_something_else(call, places, tmp_path, monkeypatch, line):
    command = SCORE.format(results=tmp_path / "results", text=places["text"]).split()
    command += [places["model"], "--method", "pi", "--tokens", "80"]
    assert call(*command)[0] == 0
    (journal,) = (tmp_path / "runs/model/perplexity").glob("*.jsonl")
    (record,) = (tmp_path / "results/model/perplexity").glob("*.json")
    record.unlink()
    journal.write_text(line + "\n" + journal.read_text())
    status, _, err = call(*command)
    assert status == 2 and str(journal) in err and one_sentence(err) and not record.exists()


# ---------------------------------------------------------------------------------------------------------------------
# What the machine does to a run


@pytest.fixture
def limited(places, tmp_path):
    """limited(bytes, "passkey …") -> (status, stderr) of a process that can write no larger file."""

    def run(size, line):
        known = {**places, "out": tmp_path / "out", "results": tmp_path / "results"}
        name, *arguments = (word.format(**known) for word in line.split())
        read, write = os.pipe()

        def work():
            os.dup2(write, 2)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            sys.argv = [name, *arguments]
            try:
                command_line.run(importlib.import_module(f"experiments.{name}").main)
            finally:
                sys.stderr.flush()

        child = processes.fork(work)
        os.close(write)
        with os.fdopen(read) as said:
            err = said.read()
        return processes.wait(child), err

    return run


@pytest.mark.parametrize("line", rows("""
    a record: disturbance --model tiny --results {results}
    a journal: passkey --model {model} --method pi --results {results} --depths 1 --keys 1 --lengths 400
    an export: extend --model {model} --output {out}
    a fine-tune: finetune --model {model} --steps 1 --batch 1 --save-every 1 --data {root} --results {results} --output {out}
"""))  # fmt: skip  # noqa: E501
def test_a_disk_that_takes_no_more(limited, places, tmp_path, line):
    if "finetune" in line:
        (tmp_path / "books").mkdir()
        (tmp_path / "books" / "text.txt").write_bytes(places["text"].read_bytes())
        line = line.replace("{root}", str(tmp_path / "books"))
    status, err = limited(50, line)
    assert status == 2 and "Traceback" not in err, err
    assert err.splitlines()[-1].startswith("error: ")
    assert not (tmp_path / "out").exists() and not list((tmp_path / "results").rglob("*.json"))
    assert not list(tmp_path.rglob("*.partial"))


def test_a_terminal_that_knows_ascii_only(places, monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    monkeypatch.setattr(sys, "argv", ["extend", "--model", str(places["model"])])
    command_line.run(importlib.import_module("experiments.extend").main)
    assert b"\\u0302" in out.getvalue()  # of n̂


def test_memory_that_runs_out(call, places, tmp_path, monkeypatch):
    words = "[enforce fail at alloc_cpu.cpp:124] . DefaultCPUAllocator: can't allocate memory"
    monkeypatch.setattr("experiments.kit.experiment.generate", lambda *_: (_ for _ in ()).throw(RuntimeError(words)))
    line = PASSKEY.format(results=tmp_path / "results").split()
    status, _, err = call(*line, "--model", places["model"])
    assert status == 2 and err.splitlines()[-1].startswith("error: ") and "Traceback" not in err


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
