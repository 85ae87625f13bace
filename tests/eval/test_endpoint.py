"""A server's answers are those of this process; what it cannot do, and what it does in silence, is refused."""

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
    monkeypatch.setattr(endpoint, "PATIENCE", 0.2)


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
    with Completions(log_probs, owner=owner) as served:
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


def text_alone(answer):
    answer["choices"][0].pop("token_ids", None)


def begins_with_bos(answer):
    answer["usage"]["prompt_tokens"] += 1


def null(answer):
    answer["choices"][0]["logprobs"]["token_logprobs"][-1] = None


@pytest.mark.parametrize(
    ("how", "then", "scores", "fragment"),
    [
        ({"name": "another"}, None, False, "another"),
        ({}, 422, False, "llama-server"),
        ({}, text_alone, False, "SGLang"),
        ({"owner": "llamacpp"}, None, True, "vLLM does"),
        ({}, begins_with_bos, False, "4 tokens instead of 3"),
        ({}, lambda answer: answer.pop("choices"), False, "choices"),
        ({"log_probs": lambda ids: [[math.nan] * 300]}, None, False, "not JSON compliant"),
    ],
    ids=["another model", "no ids", "ids are not returned", "no echo", "BOS", "other JSON", "NaN"],
)
def test_a_server_that_cannot_do_what_is_needed_is_refused_at_once(how, then, scores, fragment):
    with Completions(**{"log_probs": counting, **how}) as served:
        served.next = [then]
        with pytest.raises(InputError, match=fragment):
            Endpoint(served.url, "model", CONFIG, scores=scores)
        assert len(served.asked) <= 1


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
        served.next = [null]
        with pytest.raises(NonFiniteError, match="odd.*not finite"):
            list(at.generate([Request("odd", (3, 4), 2)]))


def test_what_fails_for_a_moment_is_asked_again(monkeypatch):
    monkeypatch.setattr(endpoint, "PATIENCE", 5)
    monkeypatch.setattr(endpoint, "LONGEST_ANSWER", 0.2)
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", CONFIG)
        served.next = [429, "dies", "slow"]
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
