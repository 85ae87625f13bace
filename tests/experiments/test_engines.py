"""Evaluations on vLLM's worker, which has a stub of vLLM here: the same answers, kills, and what goes wrong."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
import torch

from core import clex, files, rope
from core.errors import InputError
from core.extend import export
from experiments.lab import engines
from tests import processes, vllm_stub
from tests.core.clex.made import clex_model
from tests.eval.test_open_llm import write_benchmarks
from tests.models import byte_tokenizer, checkpoint

PASSKEY = ("--lengths", "400", "600", "--depths", "2", "--keys", "1")  # 4 prompts, all beyond L' = 256
KEYS = {"400/0/0", "400/1/0", "600/0/0", "600/1/0"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture
def evaluate(call, model, tmp_path, monkeypatch):
    """evaluate("passkey", …) -> (status, stdout, stderr), on the stub"""
    monkeypatch.setattr(engines, "EXPORTS", tmp_path / "exports")

    def run(name, *arguments, engine="vllm", of=model):
        places = ("--results", tmp_path / "results", "--environments", tmp_path / "engines")
        return call(name, "--model", of, "--engine", engine, *places, *arguments)

    return run


def install(tmp_path, **behaviour):
    vllm_stub.install(tmp_path / "engines", engines.version(), **behaviour)


def lines(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def started(tmp_path):
    return lines(tmp_path / "engines" / vllm_stub.STARTED)


def answers(tmp_path, experiment):
    """The values by key of each journal, by whether it is vLLM's."""
    found = {}
    for file in (tmp_path / "runs" / "small" / experiment).glob("*.jsonl"):
        by_vllm = any(file.parent.glob(f"{file.name.split('.')[0]}.*.log"))
        found["vllm" if by_vllm else "transformers"] = {key: part["value"] for key, part in lines(file)}
    return found


def alive(ids):
    return [number for number in ids if Path(f"/proc/{number}").exists() and "Z" not in status(number)]


def status(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def gone(ids, seconds=10):
    until = time.monotonic() + seconds
    while alive(ids) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(ids)


def test_both_engines_give_the_same_and_their_records_stand_side_by_side(evaluate, tmp_path, model):
    install(tmp_path, model=True)
    method = ("--method", rope.RIVAL, "--factor", "2")
    for engine in engines.NAMES:
        assert evaluate("passkey", *method, *PASSKEY, engine=engine)[0] == 0
    found = answers(tmp_path, "passkey")
    assert found["vllm"].keys() == KEYS and found["vllm"] == found["transformers"]
    records = {file.stem: files.read_json(file, "") for file in (tmp_path / "results/small/passkey").glob("*.json")}
    plain, other = records[f"{rope.RIVAL}_s=2"], records[f"{rope.RIVAL}_s=2_vllm"]
    assert "engine" not in plain and other["engine"] == {"name": "vllm", "version": engines.version()}
    assert "engine" in other["comparable"] and other["scores"] == plain["scores"]

    (start,) = started(tmp_path)
    assert start["inode"] == (model / "model.safetensors").stat().st_ino  # linked
    assert not Path(start["model"]).exists() and not list((tmp_path / "exports").glob("[!.]*")) and gone(start["ids"])
    settings = start["settings"]
    assert (settings["work"], settings["dtype"], settings["length"]) == ("continue", "float32", 612)
    assert settings["overrides"]["max_position_embeddings"] == 612


def test_log_likelihoods_of_lm_evals_back_end(evaluate, tmp_path):
    install(tmp_path, model=True)
    write_benchmarks(tmp_path / "data")
    chosen = ("--data", tmp_path / "data", "--tasks", "hellaswag", "arc_challenge", "--shots", "2")
    for engine in engines.NAMES:
        assert evaluate("open_llm", *chosen, engine=engine)[0] == 0
    found = answers(tmp_path, "open_llm")
    assert len(found["vllm"]) == 13 and max(value["tokens"] for value in found["vllm"].values()) > 128  # some are cut
    for key, value in found["vllm"].items():
        assert value == pytest.approx(found["transformers"][key], rel=1e-5)


def test_killed_it_goes_on_and_its_worker_is_gone(model, tmp_path, monkeypatch, evaluate):
    install(tmp_path, after=2, then="hang")
    line = ("experiments.passkey", "--model", model, "--engine", "vllm", "--results", tmp_path / "results",
            "--environments", tmp_path / "engines", *PASSKEY)  # fmt: skip
    child = processes.command(*line)
    until = time.monotonic() + 60
    while len(answers(tmp_path, "passkey").get("vllm", {})) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    processes.wait(child)
    (start,) = started(tmp_path)
    assert gone(start["ids"])
    kept = answers(tmp_path, "passkey")["vllm"]
    assert len(kept) == 2

    install(tmp_path)
    (tmp_path / "engines" / vllm_stub.PROMPTS).unlink()
    assert evaluate("passkey", *PASSKEY)[0] == 0
    asked = {prompt["key"] for prompt in lines(tmp_path / "engines" / vllm_stub.PROMPTS)}
    assert asked == KEYS - kept.keys() and answers(tmp_path, "passkey")["vllm"].keys() == KEYS


@pytest.mark.parametrize(
    ("behaviour", "fragment"),
    [
        ({"after": 0, "then": "fail"}, "no memory for the cache"),
        ({"after": 1, "then": "fail"}, "a kernel is missing"),
        ({"after": 1, "then": "die"}, ".log"),
        ({"after": 1, "then": "not finite"}, "/0"),  # the end of a sample's name
        ({"version": "0.0.1"}, "0.0.1"),
    ],
    ids=["at the start", "in the middle", "killed", "no number", "another version"],
)
def test_a_failing_worker_is_one_sentence(evaluate, tmp_path, behaviour, fragment):
    vllm_stub.install(tmp_path / "engines", **{"version": engines.version()} | behaviour)
    code, _, err = evaluate("passkey", *PASSKEY)
    said = [line for line in err.splitlines() if line.startswith("error: ")]
    assert code == 2 and len(said) == 1 and fragment in said[0] and "Traceback" not in err
    assert gone(started(tmp_path)[0]["ids"]) and not list((tmp_path / "results").rglob("*passkey*.json"))


def test_what_it_cannot_serve_is_refused_before_any_work(evaluate, tmp_path):
    def refused(*arguments, **options):
        code, _, err = evaluate("passkey", *PASSKEY, *arguments, **options)
        assert code == 2 and len(err.strip().splitlines()) == 1 and "Traceback" not in err
        return err

    assert "ENGINES=vllm" in refused()
    assert "--tensor-parallel" in refused("--tensor-parallel", "2", engine="transformers")
    install(tmp_path)
    export(clex_model(), tmp_path / "moving", byte_tokenizer())
    assert (tmp_path / "moving" / clex.FILE).is_file()
    assert "transformers" in refused(of=tmp_path / "moving") and not started(tmp_path)


def test_the_worker_is_none_of_the_launchers_processes(evaluate, tmp_path, monkeypatch):
    install(tmp_path)
    for name, value in {"MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "a", "LOCAL_WORLD_SIZE": "1"}.items():
        monkeypatch.setenv(name, value)
    assert evaluate("passkey", *PASSKEY)[0] == 0
    given = started(tmp_path)[0]["environment"]
    assert not {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "LOCAL_WORLD_SIZE"} & given.keys() and "PATH" in given


def test_each_process_gets_gpus_of_its_own():
    def devices(rank, count, size, present, visible=None):
        given = {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count)}
        return engines.devices(given | ({"CUDA_VISIBLE_DEVICES": visible} if visible else {}), size, present)

    assert [devices(rank, 4, 2, 8) for rank in range(4)] == ["0,1", "2,3", "4,5", "6,7"]
    assert devices(1, 2, 1, 2, "5,7") == "7"
    assert devices(0, 1, 8, 8) is None and devices(1, 2, 1, 0) is None
    with pytest.raises(InputError, match="16"):
        devices(0, 8, 2, 8)


def test_what_a_killed_process_left_is_removed(evaluate, tmp_path):
    install(tmp_path)
    left, held = tmp_path / "exports" / "0a", tmp_path / "exports" / "0b"
    for folder in (left, held):
        folder.mkdir(parents=True)
    with files.lock(held):
        assert evaluate("passkey", *PASSKEY)[0] == 0
        assert held.exists() and not left.exists()


def test_both_locks_pin_one_release(monkeypatch):
    here = engines.version()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert engines.version() == here
