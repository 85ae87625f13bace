"""--endpoint: a record by a server is that of this process, resumes like it, and says who computed it."""

import json
import shlex
import socket
import sys

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from core import rope
from core.extend import export, extend_checkpoint
from core.huggingface.rotation import skeleton
from eval import endpoint
from eval.log_likelihood import ServedLM
from experiments.kit.pool import Chain
from experiments.kit.serving import state_length
from experiments.open_llm import OpenLLM
from experiments.suites.commands import served
from tests.completions import Completions, counting
from tests.core.clex.made import clex_model
from tests.eval.test_open_llm import write_benchmarks
from tests.models import byte_tokenizer, checkpoint

L = 512
ASKED = ("--lengths", "512", "640", "--depths", "3", "--keys", "1", "--dtype", "float32")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A model, its export, and one whose scale follows the input."""
    root = tmp_path_factory.mktemp("models")
    checkpoint(root / "toy", max_position_embeddings=L)
    extend_checkpoint(root / "toy", root / "toy-yarn", "yarn", 2)
    export(clex_model(factor=2, max_position_embeddings=L), root / "toy-clex", byte_tokenizer())
    return root


@pytest.fixture(scope="module")
def log_probs(places):
    model = AutoModelForCausalLM.from_pretrained(places / "toy-yarn").eval()

    @torch.inference_mode()
    def of(ids):
        return torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1).tolist()

    return of


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(endpoint, "PAUSE", 0.01)
    monkeypatch.setattr(endpoint, "PATIENCE", 0.1)


def journal(results, model):
    (file,) = (results.parent / "runs" / model).glob("*/*.jsonl")
    return {key: part["value"] for key, part in map(json.loads, file.read_text().splitlines())}


def record(results):
    (file,) = (file for file in results.rglob("*.json") if file.name != "model.json")
    return json.loads(file.read_text())


@pytest.mark.parametrize("owner", ["vllm", "llamacpp"])
def test_what_a_server_says_is_what_this_process_says(call, places, tmp_path, log_probs, owner):
    command = ["passkey", "--model", places / "toy-yarn", *ASKED, "--results"]
    assert call(*command, tmp_path / "here" / "results")[0] == 0
    at = tmp_path / "server" / "results"
    with Completions(log_probs, "/srv/toy-yarn", owner) as by:
        status, out, err = call(*command, at, "--endpoint", by.url)
        assert status == 0 and ("stand apart" in out) == (owner == "llamacpp"), err
        assert "done already" in call(*command, at, "--endpoint", by.url)[1]
    here, there = record(tmp_path / "here" / "results"), record(at)
    assert journal(at, "toy-yarn") == journal(tmp_path / "here" / "results", "toy-yarn")
    assert there["scores"] == here["scores"] and there["fingerprints"] == [by.fingerprint]
    assert there["engine"] == {"name": {"vllm": "vLLM", "llamacpp": "llama-server"}[owner]} and "engine" not in here
    # llama-server was not measured beside this process with every setting, so its records stand apart.
    assert ("engine" in there["comparable"]) == (owner == "llamacpp")
    status, _, err = call(*command, at)
    assert status == 2 and "engine" in err and "--replace" in err  # another run's record stays


def test_a_server_that_dies_is_resumed_and_asks_nothing_twice(call, places, tmp_path, log_probs):
    results = tmp_path / "results"
    command = ["passkey", "--model", places / "toy-yarn", *ASKED, "--results", results]
    with Completions(log_probs, "toy-yarn") as by:
        by.next = [None] * 3 + ["dies"] * 1000
        status, _, err = call(*command, "--endpoint", by.url)
        done = set(journal(results, "toy-yarn"))
        assert status == 2 and "same command again" in err and "Traceback" not in err and len(done) == 2
        by.next, asked = [], len(by.asked)
        assert call(*command, "--endpoint", by.url)[0] == 0
        assert len(by.asked) == asked + 1 + 6 - 2  # what the server can do is asked once
    assert len(journal(results, "toy-yarn")) == 6


def test_open_llm_by_a_server(call, places, tmp_path, log_probs):
    data = write_benchmarks(tmp_path / "data")
    command = ["open_llm", "--model", places / "toy-yarn", "--data", data, "--tasks", "truthfulqa", "--limit", "3"]
    command += ["--dtype", "float32", "--results"]
    assert call(*command, tmp_path / "here")[0] == 0
    with Completions(log_probs, "toy-yarn") as by:
        status, _, err = call(*command, tmp_path / "there", "--endpoint", by.url)
    assert status == 0, err
    here, there = (record(tmp_path / where)["by_document"]["truthfulqa"] for where in ("here", "there"))
    assert there == pytest.approx(here, abs=1e-4)


def test_what_is_kept_of_a_long_question_follows_the_extended_length(places, tmp_path, monkeypatch):
    with Completions(counting, "yarn_s=2") as by:
        words = f"open_llm --model {places}/toy --method yarn --dtype float32 --results {tmp_path} --endpoint {by.url}"
        monkeypatch.setattr(sys, "argv", words.split())
        experiment = OpenLLM(OpenLLM.parse())
        with experiment.serving.serve({"method": "yarn", "factor": 2, "options": {}}, 9) as at:
            assert ServedLM(at, byte_tokenizer()).max_length == 2 * L


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ("--model {0}/toy --method clex --weights {0}/toy-clex", "--endpoint out"),
        ("--model {}/toy-clex", "--endpoint out"),
        ("--model {}/toy --method pi yarn", "one --method"),
        ("--model {}/toy --method pi", "pi_s=2"),
        ("--model {}/toy-yarn --lengths 1200", "1,024"),
        ("--model {}/toy-yarn --endpoint localhost:80", "http://"),
        ("--model {}/toy-yarn --endpoint 'serve {{model}}'", "vLLM"),
        ("--model {}/toy-yarn --endpoint 'vllm-is-not-here {{model}}'", "vllm-is-not-here"),
    ],
)
def test_what_a_server_cannot_compute_is_one_sentence(call, places, tmp_path, arguments, fragment):
    with Completions(counting, "toy-yarn") as by:
        given = shlex.split(f"--endpoint {by.url} {arguments.format(places)}")
        status, _, err = call("passkey", *ASKED, *given, "--results", tmp_path / "results")
    assert status == 2 and fragment in err.splitlines()[-1] and "Traceback" not in err
    assert not list(tmp_path.rglob("*.json*"))


def test_the_dtype_of_a_server_is_said_where_the_checkpoint_does_not(call, places, tmp_path):
    with Completions(counting, "toy-yarn") as by:
        how = ["--endpoint", by.url, "--results", tmp_path / "results", *ASKED[:-2]]
        status, _, err = call("passkey", "--model", places / "toy-yarn", *how)
        assert status == 2 and "--dtype" in err
        config = json.loads((places / "toy-yarn" / "config.json").read_text())
        half = extend_checkpoint(places / "toy-yarn", tmp_path / "toy-yarn", "yarn", 2)
        (half / "config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}))
        assert call("passkey", "--model", half, *how)[0] == 0
    assert record(tmp_path / "results")["dtype"] == "bfloat16"


def test_a_command_is_started_for_each_model_and_stopped(call, places, tmp_path):
    told = tmp_path / "vllm.jsonl"
    command = f"{sys.executable} -m tests.completions {{model}} {{dtype}} {told}"
    methods = ("--method", "pi", "yarn", "--factor", "2", "--lengths", "640", "1280", "--depths", "1", "--keys", "1")
    where = ("--results", tmp_path / "results", "--endpoint", command)
    status, _, err = call("passkey", "--model", places / "toy", *methods, *where)
    assert status == 0, err
    served = [json.loads(line) for line in told.read_text().splitlines()]
    assert [facts["dtype"] for facts in served] == ["float32"] * 2
    for facts in served:
        assert facts["length"] > 2 * L and facts["links"] == 2  # as many tokens as are asked for; weights not copied
        with socket.socket() as gone:
            assert gone.connect_ex(("127.0.0.1", facts["port"]))
    assert not list((tmp_path / "runs" / "served").glob("*/config.json"))
    assert "done already" in call("passkey", "--model", places / "toy", *methods, *where)[1]
    assert len(told.read_text().splitlines()) == 2  # nothing is started for what is done


def test_a_server_that_does_not_start_shows_its_last_lines(call, places, tmp_path):
    command = f"{sys.executable} -m tests.completions {{model}} broken vllm"
    status, _, err = call(
        "passkey", "--model", places / "toy-yarn", *ASKED, "--results", tmp_path, "--endpoint", command
    )
    assert status == 2 and "no such dtype" in err and "exit status 1" in err


@pytest.mark.parametrize(
    "method", [name for name, method in rope.METHODS.items() if method.ready and name != "original"]
)
def test_a_longer_length_changes_no_frequency(places, tmp_path, method):
    extend_checkpoint(places / "toy", tmp_path / "extended", method, 2)
    before = skeleton(AutoConfig.from_pretrained(tmp_path / "extended")).model.rotary_emb
    state_length(tmp_path / "extended", 1500)
    config = AutoConfig.from_pretrained(tmp_path / "extended")
    after = skeleton(config).model.rotary_emb
    assert config.max_position_embeddings == 1500
    torch.testing.assert_close(after.inv_freq, before.inv_freq, rtol=1e-6, atol=0)
    assert after.attention_scaling == pytest.approx(before.attention_scaling)


def test_of_a_suite_the_server_computes_what_it_can_on_all_gpus():
    commands = [["experiments.finetune"], ["experiments.perplexity"], ["experiments.ruler", "--lengths", "9"]]
    tuned, learned, once = served(
        [Chain("pi_s=2_seed=0", commands, 1), Chain("clex_s=2", commands, 1), Chain("disturbance", commands[:1])],
        "a {model}",
    )
    assert tuned.commands == [commands[0], [*commands[2], "--endpoint", "a {model}"], commands[1]] and tuned.trains == 2
    assert learned.commands == commands and once.commands == commands[:1]
