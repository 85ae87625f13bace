"""--endpoint: a record by a server is that of this process, resumes like it, and says who computed
it."""

import shlex
import time

import pytest
from transformers import AutoModelForCausalLM

from core.extend import export, extend_checkpoint
from tests.completions import Completions, computed_by, counting
from tests.core.clex_models import clex_model
from tests.experiments.written import journal, journal_files, record, record_file
from tests.models import byte_tokenizer, checkpoint

L = 512
ASKED = "passkey --lengths 512 --depths 4 --keys 1 --dtype float32"


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
    return computed_by(AutoModelForCausalLM.from_pretrained(places / "toy-yarn"))


@pytest.mark.parametrize(("owner", "engine"), [("vllm", "vLLM"), ("llamacpp", "llama-server")])
def test_what_a_server_says_is_what_this_process_says(
    done, refusal, places, tmp_path, log_probs, owner, engine
):
    """llama-server was not measured beside this process with every setting, so its records stand
    apart."""
    command = [ASKED, "--model", places / "toy-yarn", "--results"]
    at_home = tmp_path / "here" / "results"
    at_server = tmp_path / "server" / "results"
    done(*command, at_home)
    apart = owner == "llamacpp"
    with Completions(log_probs, "/srv/toy-yarn", owner) as by:
        served = [*command, at_server, "--endpoint", by.url]
        assert ("stand apart" in done(*served)) == apart
        assert "done already" in done(*served)
    here = record(at_home)
    there = record(at_server)
    assert journal(at_server) == journal(at_home)
    assert there["scores"] == here["scores"]
    assert there["environment"]["fingerprints"] == [by.fingerprint]
    assert there["run"]["engine"] == {"name": engine}
    assert "engine" not in here["run"]
    assert ("engine" in there["comparable"]) == apart
    said = refusal(*command, at_server)  # another run's record stays
    assert "engine" in said
    assert "--replace" in said


def test_a_server_that_dies_is_resumed_and_asks_nothing_twice(
    done, refusal, places, tmp_path, log_probs
):
    """What the server can do is asked once each time; another version of it begins anew.

    It is started again at another address, so what the first command still had under way when it
    ended is not counted.
    """
    results = tmp_path / "results"

    def dies_once_answers_are_kept(_):
        for _ in range(3000):
            if any(file.read_text().count("\n") == 2 for file in journal_files(results)):
                break
            time.sleep(0.02)
        raise ConnectionAbortedError

    command = [ASKED, "--model", places / "toy-yarn", "--results", results, "--endpoint"]
    with Completions(log_probs, "toy-yarn") as by:
        by.next = [None] * 3 + [dies_once_answers_are_kept] * 1000
        assert "same command again" in refusal(*command, by.url)
    assert len(journal(results)) == 2
    with Completions(log_probs, "toy-yarn") as by:
        done(*command, by.url)
        assert len(by.asked) == 1 + 4 - 2
        assert len(journal(results)) == 4
        record_file(results).unlink()
        by.fingerprint = "vllm-0.2"
        by.asked.clear()
        done(*command, by.url)
        assert len(by.asked) == 1 + 4
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
def test_what_a_server_cannot_compute_is_one_sentence(
    refusal, places, tmp_path, arguments, fragment
):
    names = "toy-yarn", "pi_s=2", "other/pi_s=2"
    models = [{"id": name, "max_model_len": 800} for name in names]
    words = shlex.split(arguments.format(places))
    with Completions(counting, "toy-yarn", models=models) as by:
        command = [ASKED, "--endpoint", by.url, *words, "--results", tmp_path / "results"]
        said = refusal(*command)
    assert fragment in said
    assert "secret" not in said
    assert not list(tmp_path.rglob("*.json*"))
