"""What an engine answers is compared with transformers, position by position; the engine here is a stub."""

import json
import runpy
import sys
import types
from itertools import pairwise

import numpy as np
import pytest
import torch

from core import files, rope
from experiments.beyond import served
from experiments.beyond.served import ENGINES, describe
from experiments.kit.records import ROOT
from tests import processes
from tests.core.beyond.test_gguf_file import write
from tests.models import byte_tokenizer, checkpoint, random_model

TEXT = "It was the best of times, it was the worst of times. " * 8
LENGTH, SCORED = 144, 16  # beyond L = 128

STUB = """#!{python}
import json, sys
isolated, worker, model, request, answer = sys.argv[1:]
asked = json.load(open(request))
{body}
"""
ANSWERS = """
config = json.load(open(model + "/config.json")) if not model.endswith(".gguf") else {{}}
notes = {{"first": asked["ids"][0], "count": len(asked["ids"]), "length": asked["length"],
         "context": config.get("max_position_embeddings")}}
losses = [5.0] * (asked["scored"] - 1) + [{last}]
json.dump({{"losses": losses, "version": {version!r}, "notes": notes}}, open(answer, "w"))
"""


SERVER = """#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.completions import Completions, counting
def given(name):
    return sys.argv[sys.argv.index(name) + 1]
served = Completions(counting, given("--model"), most=int(given("--max-model-len")), port=int(given("--port")))
served.fingerprint = "vllm-{version}-abc"
served.server.serve_forever()
"""


def install(environments, name, body, program=STUB, **more):
    """An environment whose interpreter is a program of the test's."""
    place = environments / ENGINES[name].environment / "bin" / "python"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(program.format(python=sys.executable, body=body, root=str(ROOT), **more), encoding="utf-8")
    place.chmod(0o755)


def answers(name, last="6.0"):
    return ANSWERS.format(version=ENGINES[name].version, last=last)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture
def serve(call, model, tmp_path):
    """serve(…) -> (status, stdout, stderr, the records by name)"""
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")

    def run(*arguments):
        shared = ("--model", model, "--texts", tmp_path / "text.txt", "--results", tmp_path / "results")
        done = call("served", *shared, "--environments", tmp_path / "engines", *arguments)
        found = (tmp_path / "results").glob("*/beyond/served/*.json")
        return *done, {file.stem: files.read_json(file, "") for file in found}

    return run


def test_an_engine_is_compared_at_every_position_beyond_the_context(serve, tmp_path):
    install(tmp_path / "engines", "mlx", answers("mlx"))
    status, _, _, records = serve("--engine", "mlx", "--method", rope.BASELINE, "--factor", "2")
    (record,) = records.values()
    assert status == 0 and (record["method"], record["factor"]) == (rope.BASELINE, 2)
    assert record["engine"] == {"name": "mlx", "version": ENGINES["mlx"].version}
    ids = byte_tokenizer()(TEXT, add_special_tokens=False, return_tensors="pt").input_ids[:, :LENGTH]
    said = record["answer"]
    assert (said["first"], said["count"], said["length"], said["context"]) == (ids[0, 0], LENGTH, 256, 256)

    with torch.inference_mode():
        logits = random_model()(ids[:, :-1]).logits[0, -SCORED:]
        plain = torch.nn.functional.cross_entropy(logits, ids[0, -SCORED:], reduction="none").double().numpy()
    engines, scores = np.array([5.0] * (SCORED - 1) + [6.0]), record["scores"]
    losses = scores["losses"]
    assert losses["engine"]["mean"] == pytest.approx(engines.mean()) and losses["engine"]["n"] == SCORED
    assert losses["unextended"]["mean"] == pytest.approx(plain.mean(), rel=1e-5)
    assert losses["transformers"]["mean"] != pytest.approx(plain.mean(), rel=1e-5)
    apart = scores["apart_from"]["unextended"]
    assert apart["largest"] == pytest.approx(np.abs(engines - plain).max(), rel=1e-4)
    assert apart["mean"] == pytest.approx(np.abs(engines - plain).mean(), rel=1e-4)
    assert apart["of_means"] == pytest.approx(engines.mean() - plain.mean(), rel=1e-4)


def test_an_export_is_served_as_it_is_and_not_measured_twice(serve, tmp_path, model):
    install(tmp_path / "engines", "mlx", answers("mlx"))
    status, _, _, records = serve("--engine", "mlx")
    assert status == 0 and list(records) == ["as-it-is_mlx"] and records["as-it-is_mlx"]["answer"]["context"] == 128
    install(tmp_path / "engines", "mlx", "sys.exit(1)")
    status, out, _, again = serve("--engine", "mlx")
    assert status == 0 and again == records and "done already" in out


@pytest.mark.parametrize("version", [ENGINES["vllm"].version, "9.9"])
def test_vllm_is_asked_as_a_server(serve, tmp_path, version):
    install(tmp_path / "engines", "vllm", "", SERVER, version=version)
    status, _, err, records = serve("--engine", "vllm", "--method", rope.BASELINE, "--factor", "2")
    if version == "9.9":
        assert status == 2 and "9.9" in err and not records
        return
    (record,) = records.values()
    ids = byte_tokenizer()(TEXT, add_special_tokens=False).input_ids[:LENGTH]
    losses = [0.0 if token == last + 1 else 20.0 for last, token in pairwise(ids)][-SCORED:]  # counting's
    assert status == 0 and record["scores"]["losses"]["engine"]["mean"] == pytest.approx(np.mean(losses))
    assert record["answer"] == {"served": "checkpoint", "fingerprint": f"vllm-{version}-abc"}


def test_a_gguf_file_is_what_llama_cpp_serves(serve, tmp_path):
    install(tmp_path / "engines", "llama.cpp", answers("llama.cpp"))
    file = write(tmp_path / "other.gguf")
    status, _, _, records = serve("--engine", "llama.cpp", "--gguf", file)
    (record,) = records.values()
    assert status == 0 and record["engine"]["gguf"] == "other.gguf" and str(tmp_path) not in json.dumps(record)
    assert describe(str(file)) == "GGUF"  # which does not say what it is made of


@pytest.mark.parametrize(
    ("body", "fragment"),
    [
        ("print('a traceback'); sys.exit('no such operator')", "no such operator"),
        ("", "mlx"),
        (answers("mlx", last="float('nan')"), "mlx"),
    ],
    ids=["fails", "says nothing", "no number"],
)
def test_a_failing_engine_is_one_sentence(serve, tmp_path, body, fragment):
    install(tmp_path / "engines", "mlx", body)
    status, _, err, records = serve("--engine", "mlx")
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert status == 2 and len(lines) == 1 and fragment in lines[0] and "Traceback" not in err and not records


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["--engine", "transformers4.51"], "env-serving"),
        (["--engine", "llama.cpp"], "--gguf"),
        (["--tokens", "128"], "128"),
        (["--engine", "ollama"], "ollama"),
    ],
)
def test_what_cannot_be_compared_is_refused(serve, tmp_path, arguments, fragment):
    for name in ("mlx", "llama.cpp"):
        install(tmp_path / "engines", name, answers(name))
    status, _, err, records = serve(*arguments)
    assert status == 2 and fragment in err and "Traceback" not in err and not records


def test_this_transformers_computes_the_same_from_an_export(serve, monkeypatch):
    """Without any other engine; what is not installed is said. The program begins as a copy of this process."""

    def run(line, **_):
        _, isolated, worker, *arguments = line
        monkeypatch.setattr(sys, "argv", [worker, *arguments])
        assert isolated == "-I" and processes.barrier(processes.fork(lambda: runpy.run_path(worker))) == 0

    monkeypatch.setattr(served, "subprocess", types.SimpleNamespace(run=run, STDOUT=None))
    status, out, _, records = serve("--method", rope.PROPOSED)
    (record,) = records.values()
    assert status == 0 and "vllm is not installed" in out and record["engine"]["name"] == "transformers"
    assert record["scores"]["apart_from"]["transformers"]["largest"] < 1e-4
    assert record["scores"]["apart_from"]["unextended"]["largest"] > 1e-3
