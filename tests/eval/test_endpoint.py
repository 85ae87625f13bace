"""A server's answers are those of this process; what it cannot do, and what it does in silence, is refused."""

import itertools
import math
import time

import numpy as np
import pytest
import torch

from core.errors import InputError, NonFiniteError
from eval import endpoint
from eval.endpoint import Endpoint
from eval.generation import Request, generate
from eval.log_likelihood import ServedLM, SharedPrefixLM
from tests.completions import Completions, counting
from tests.models import byte_tokenizer, random_model

MODEL = random_model()
CONFIG = MODEL.config


@torch.inference_mode()
def log_probs(ids):
    return torch.log_softmax(MODEL(torch.tensor([ids])).logits[0].double(), -1).tolist()


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(endpoint, "PAUSE", 0.01)
    monkeypatch.setattr(endpoint, "TRIES", 4)
    monkeypatch.setattr(endpoint, "LARGEST", 2**18)


def requests(count=4, **more):
    rng = np.random.default_rng(0)
    return [Request(str(i), tuple(rng.integers(3, 300, 5 + i).tolist()), 4, **more) for i in range(count)]


@pytest.fixture(scope="module")
def stops():
    """Ids that are a third token of some answers and a first of others."""
    answers = dict(generate(MODEL, requests()))
    return frozenset({answers["0"][2], answers["1"][0]})


@pytest.mark.parametrize("owner", ["vllm", "llamacpp"])
def test_continuations_are_those_of_this_process(owner, stops):
    free, stopped = requests(), requests(3, stop=stops)
    with Completions(log_probs, "elsewhere/model", owner) as served:
        answers = Endpoint(served.url, "elsewhere/model", CONFIG).generate(free)
        assert dict(answers) == dict(generate(MODEL, free))
        cut = dict(Endpoint(f"{served.url}/v1/", "model", CONFIG).generate(stopped))
        assert cut == dict(generate(MODEL, stopped)) and cut["1"] == []
    for body in served.asked:  # a penalty of the checkpoint's own would change greedy choices
        assert (body["temperature"], body["repetition_penalty"], body["logprobs"]) == (0, 1, 1)


def test_the_models_own_ends_and_the_least_tokens_are_kept(stops, monkeypatch):
    least = requests(3, min_new_tokens=1)
    with Completions(log_probs) as served:
        answers = dict(Endpoint(served.url, "model", CONFIG, stops).generate(least))
    monkeypatch.setattr(MODEL.generation_config, "eos_token_id", sorted(stops))
    assert answers == dict(generate(MODEL, least))
    with Completions(log_probs, owner="llamacpp") as served, pytest.raises(InputError, match="min_tokens"):
        list(Endpoint(served.url, "model", CONFIG, stops).generate(least))


def test_log_likelihoods_are_those_of_this_process():
    """Of answers to questions that fit, and to one that loses its beginning."""
    pairs = [("a question", " yes"), ("a question", " no it is not"), ("long " * 40, " yes")]
    encoded = [(pair, *(byte_tokenizer().encode(text) for text in pair)) for pair in pairs]
    with Completions(log_probs) as served:
        at = Endpoint(served.url, "model", CONFIG, scores=True)
        found = ServedLM(at, byte_tokenizer())._loglikelihood_tokens(encoded)
    here = SharedPrefixLM(pretrained=MODEL, tokenizer=byte_tokenizer(), softmax_dtype="float32")
    for (nats, greedy), (wanted, likeliest) in zip(found, here._loglikelihood_tokens(encoded), strict=True):
        assert nats == pytest.approx(wanted, abs=1e-3) and greedy == likeliest
    assert max(len(body["prompt"]) for body in served.asked) == CONFIG.max_position_embeddings + 1


def puts(value, *path):
    """What puts a value in place of one in an answer; without a value, it leaves that out."""

    def change(answer):
        *before, last = path
        for key in before:
            answer = answer[key]
        answer[last] = value
        if value is puts:
            del answer[last]

    return change


CHOICE = "choices", 0
NATS = *CHOICE, "logprobs", "token_logprobs"


@pytest.mark.parametrize(
    ("how", "then", "scores", "fragment"),
    [
        ({"name": "another"}, None, False, "another"),
        ({"name": "served/other"}, None, False, "not base/model"),
        ({"name": "\x1b[31mbase/model"}, None, False, "pattern"),
        ({}, 422, False, "llama-server"),
        ({}, puts(puts, *CHOICE, "token_ids"), False, "SGLang"),
        ({"owner": "llamacpp"}, None, True, "vLLM does"),
        ({}, puts(4, "usage", "prompt_tokens"), False, "4 tokens instead of 3"),
        ({}, puts(puts, "choices"), False, "choices"),
        ({}, puts([], "choices"), False, "choices"),
        ({}, puts("1", "choices"), False, "choices"),
        ({"log_probs": lambda ids: [[math.nan] * 300]}, None, False, "not JSON compliant"),
        ({}, puts([6, 7, 8], *CHOICE, "token_ids"), False, "3 tokens"),
        ({}, puts([6, 300], *CHOICE, "token_ids"), False, "300"),
        ({}, puts([6, -1], *CHOICE, "token_ids"), False, "300"),
        ({}, puts([6, True], *CHOICE, "token_ids"), False, "valid integer"),
        ({}, puts([6, None], *CHOICE, "token_ids"), False, "valid integer"),
        ({}, puts([6, 7.0], *CHOICE, "token_ids"), False, "valid integer"),
        ({}, puts([], *NATS), False, "0 log-probabilities"),
        ({}, puts([0.0, 0.5], *NATS), False, "above 0"),
        ({}, puts("other", "model"), False, "other"),
        ({}, puts({}, "system_fingerprint"), False, "system_fingerprint"),
        ({}, puts("\x1b[31m", "system_fingerprint"), False, "pattern"),
        ({}, iter([b"<html>"]), False, "JSON"),
        ({}, iter([b"[" * 100_000]), False, "JSON"),
        ({}, itertools.repeat(b"0" * 2**16), False, "bytes"),
        ({}, (time.sleep(0.05) or b"0" for _ in itertools.count()), False, "seconds"),
        ({}, "slow", False, "seconds"),
    ],
)
def test_a_server_that_cannot_do_what_is_needed_is_refused_at_once(how, then, scores, fragment, monkeypatch):
    if fragment == "seconds":
        monkeypatch.setattr(endpoint, "LONGEST_ANSWER", 0.2)
    with Completions(**{"log_probs": counting, "name": "base/model", **how}) as served:
        served.next = [then]
        with pytest.raises(InputError, match=fragment) as refused:
            Endpoint(served.url, "base/model", CONFIG, scores=scores)
        assert len(served.asked) <= 1 and str(refused.value).isprintable()


@pytest.mark.parametrize("models", [["model"], [{"id": 7}], [{}], [{"id": "model", "max_model_len": -1}], "model", []])
def test_a_list_of_models_that_is_none_is_refused(models):
    with Completions(counting) as served, pytest.raises(InputError, match=r"data\.|data:|no model"):
        served.served_models = models
        Endpoint(served.url, "model", CONFIG)


@pytest.mark.parametrize("key", ["sk secret", "sk-\nsecret", "sk-sécret", "sk-secret\x07."])
def test_a_key_is_stripped_or_refused_and_never_shown(key, monkeypatch):
    with Completions(counting) as served:
        monkeypatch.setenv("OPENAI_API_KEY", " sk-secret\n")
        at = Endpoint(served.url, "model", CONFIG)
        assert served.keys == ["Bearer sk-secret"]
        served.complete = lambda asked: (401, {"error": "wrong key sk-secret"})
        with pytest.raises(InputError, match="wrong key …"):
            list(at.generate(requests(1)))
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(InputError, match="OPENAI_API_KEY") as refused:
            Endpoint(served.url, "model", CONFIG)
    assert "sk" not in str(refused.value) and "cret" not in str(refused.value)


@pytest.mark.parametrize("ended", ["abort", "error", "content_filter", "", None])
def test_an_answer_that_the_server_broke_off_is_asked_for_again(ended, monkeypatch):
    broken = puts(ended, *CHOICE, "finish_reason")
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", CONFIG)
        served.next = [broken, broken]
        assert dict(at.generate([Request("one", (7, 8), 3)])) == {"one": [9, 10, 11]}
        served.next = [broken] * 4
        with pytest.raises(InputError, match="one .*ends by"):
            list(at.generate([Request("one", (7, 8), 3)]))
        assert not served.next


def test_a_server_that_was_changed_meanwhile_is_not_mixed_with_the_one_before():
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", CONFIG)
        served.fingerprint = "vllm-0.2"
        with pytest.raises(InputError, match="another than before"):
            list(at.generate(requests(1)))


def test_what_does_not_fit_is_refused_before_it_is_sent_and_never_shortened():
    (request,) = requests(1)
    with Completions(counting, most=len(request.prompt) + 3) as served:
        at = Endpoint(served.url, "model", CONFIG)
        with pytest.raises(InputError, match="9"):
            list(at.generate([request]))
        assert len(served.asked) == 1
        served.states_length = False
        with pytest.raises(InputError, match="made 3 tokens of 4"):
            list(Endpoint(served.url, "model", CONFIG).generate([request]))


def test_a_log_probability_that_is_not_finite_names_its_sample():
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", CONFIG)
        served.next = [puts([0.0, None], *NATS)]
        with pytest.raises(NonFiniteError, match="odd.*not finite"):
            list(at.generate([Request("odd", (3, 4), 2)]))


def test_what_fails_for_a_moment_is_asked_again():
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", CONFIG)
        served.next = [429, "dies", 503]
        assert dict(at.generate([Request("one", (7, 8), 3)])) == {"one": [9, 10, 11]}


def test_retries_end_and_nothing_goes_on_after_the_error():
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", CONFIG)
        served.next = [500] * 1000
        with pytest.raises(InputError, match="give the same command again"):
            list(at.generate(requests()))
        count = len(served.asked)
        time.sleep(0.1)
        assert len(served.asked) <= count + len(requests())
    with pytest.raises(InputError, match="does not answer"):  # and where nothing listens, at once
        Endpoint(served.url, "model", CONFIG)
