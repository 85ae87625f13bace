"""--endpoint: a record by a server is that of this process, resumes like it, and says who computed
it."""

import json
import shlex

import pytest
import torch
from transformers import AutoModelForCausalLM

from core.extend import export, extend_checkpoint
from eval.beyond import endpoint
from tests.completions import Completions, counting
from tests.core.clex_models import clex_model
from tests.models import byte_tokenizer, checkpoint

L = 512
ASKED = ("--lengths", "512", "--depths", "4", "--keys", "1", "--dtype", "float32")


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
    monkeypatch.setattr(endpoint, "TRIES", 3)


def journal(results, model):
    (file,) = (results.parent / "runs" / model).glob("*/*.jsonl")
    return {key: entry["value"] for key, entry in map(json.loads, file.read_text().splitlines())}


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
    here = record(tmp_path / "here" / "results")
    there = record(at)
    assert journal(at, "toy-yarn") == journal(tmp_path / "here" / "results", "toy-yarn")
    assert there["scores"] == here["scores"] and there["environment"]["fingerprints"] == [
        by.fingerprint
    ]
    name = {"vllm": "vLLM", "llamacpp": "llama-server"}[owner]
    assert there["run"]["engine"] == {"name": name} and "engine" not in here["run"]
    # llama-server was not measured beside this process with every setting, so its records stand
    # apart.
    assert ("engine" in there["comparable"]) == (owner == "llamacpp")
    status, _, err = call(*command, at)
    assert status == 2 and "engine" in err and "--replace" in err  # another run's record stays


def test_a_server_that_dies_is_resumed_and_asks_nothing_twice(call, places, tmp_path, log_probs):
    results = tmp_path / "results"
    command = ["passkey", "--model", places / "toy-yarn", *ASKED, "--results", results]
    with Completions(log_probs, "toy-yarn") as by:
        by.next = [None] * 3 + ["dies"] * 1000
        status, _, err = call(*command, "--endpoint", by.url)
        assert status == 2 and "same command again" in err and "Traceback" not in err
        done = len(list((results.parent / "runs").rglob("*.jsonl"))) and len(
            journal(results, "toy-yarn")
        )
        by.next = []
        asked = len(by.asked)
        assert call(*command, "--endpoint", by.url)[0] == 0
        assert len(by.asked) == asked + 1 + 4 - done  # what the server can do is asked once
        assert len(journal(results, "toy-yarn")) == 4
        # Another folder's records, and another version of the server, begin anew, each with one
        # request that tries it.
        for other, version in (("others", by.fingerprint), ("results", "vllm-0.2")):
            (tmp_path / other / "toy-yarn" / "passkey" / "yarn_s=2.json").unlink(missing_ok=True)
            by.fingerprint = version
            asked = len(by.asked)
            assert call(*command[:-1], tmp_path / other, "--endpoint", by.url)[0] == 0
            assert len(by.asked) == asked + 1 + 4
    assert record(results)["environment"]["fingerprints"] == ["vllm-0.2"]


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ("--model {}/toy-clex", "--endpoint out"),
        ("--model {}/toy --method pi yarn", "one --method"),
        ("--model {}/toy --method pi", "not toy/pi_s=2"),
        ("--model {}/toy --method by-length --of pi", "--endpoint out"),
        ("--model {}/toy-yarn --lengths 1200", "states 1,024"),
        ("--model {}/toy-yarn --lengths 900", "takes 800"),
        ("--model {}/toy-yarn --endpoint localhost:80", "http://"),
        ("--model {}/toy-yarn --endpoint 'http://127.0.0.1\n:80'", "http://"),
        ("--model {}/toy-yarn --endpoint http://user:secret@127.0.0.1", "OPENAI_API_KEY"),
    ],
)
def test_what_a_server_cannot_compute_is_one_sentence(call, places, tmp_path, arguments, fragment):
    names = "toy-yarn", "pi_s=2", "other/pi_s=2"
    with Completions(
        counting, "toy-yarn", models=[{"id": name, "max_model_len": 800} for name in names]
    ) as by:
        given = shlex.split(f"--dtype float32 --endpoint {by.url} {arguments.format(places)}")
        status, _, err = call("passkey", *ASKED[:-2], *given, "--results", tmp_path / "results")
    assert (
        status == 2
        and fragment in err.splitlines()[-1]
        and "Traceback" not in err
        and "secret" not in err
    )
    assert not list(tmp_path.rglob("*.json*"))
