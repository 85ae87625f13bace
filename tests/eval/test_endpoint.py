"""A server's answers are those of this process; what it cannot do, and what it does in silence, is refused."""

import math
import time

import numpy as np
import pytest
import torch

from core.errors import InputError, NonFiniteError
from eval import endpoint, open_llm
from eval.endpoint import Endpoint
from eval.generation import Request, generate
from tests.completions import Completions, counting
from tests.eval.test_open_llm import write_benchmarks
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


def requests(count=6, **more):
    draw = np.random.default_rng(0)
    return [Request(str(i), tuple(draw.integers(3, 300, 5 + i).tolist()), 6, **more) for i in range(count)]


def stops():
    """Ids that are a third token of some answers and a first of others."""
    made = dict(generate(MODEL, requests()))
    return frozenset({made["0"][2], made["1"][0]})


@pytest.mark.parametrize("owner", ["vllm", "llamacpp"])
def test_continuations_are_those_of_this_process(owner):
    asked = [*requests(), *requests(3, stop=stops())]
    with Completions(log_probs, owner=owner) as served:
        made = Endpoint(served.url, "elsewhere/model", CONFIG).generate(asked[:6])
        assert dict(made) == dict(generate(MODEL, asked[:6]))
        cut = dict(Endpoint(f"{served.url}/v1/", "model", CONFIG).generate(asked[6:]))
        assert cut == dict(generate(MODEL, asked[6:])) and cut["1"] == []
    for body in served.asked:  # a penalty of the checkpoint's own would change greedy choices
        assert (body["temperature"], body["repetition_penalty"], body["logprobs"]) == (0, 1, 1)


def test_the_models_own_ends_and_the_least_tokens_are_kept():
    ends, asked = stops(), requests(3, min_new_tokens=1)
    MODEL.generation_config.eos_token_id = sorted(ends)
    try:
        wanted = dict(generate(MODEL, asked))
    finally:
        MODEL.generation_config.eos_token_id = CONFIG.eos_token_id
    with Completions(log_probs) as served:
        assert dict(Endpoint(served.url, "model", CONFIG, ends).generate(asked)) == wanted
    with (
        Completions(log_probs, owner="llamacpp") as served,
        pytest.raises(InputError, match="min_tokens"),
    ):
        list(Endpoint(served.url, "model", CONFIG, ends).generate(asked))


def test_log_likelihoods_are_those_of_this_process(tmp_path):
    data = write_benchmarks(tmp_path)
    long = random_model(max_position_embeddings=64)  # questions lose their beginnings
    with Completions(log_probs) as served:
        at = Endpoint(served.url, "model", long.config, scores=True)
        keys = open_llm.documents("truthfulqa", data, 3)
        found = dict(open_llm.evaluate(at, byte_tokenizer(), "truthfulqa", keys, data))
    wanted = dict(open_llm.evaluate(long, byte_tokenizer(), "truthfulqa", keys, data))
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key]["score"] == pytest.approx(value["score"], abs=1e-5)
    assert all(len(body["prompt"]) <= 65 for body in served.asked)


def test_each_token_is_scored_after_all_before_it():
    prompt = list(range(7, 27))
    with Completions(log_probs) as served:
        (found,) = Endpoint(served.url, "model", CONFIG, scores=True).scored([prompt], [4])
    for place, (nats, greedy) in zip(range(16, 20), found, strict=True):
        now = log_probs(prompt[:place])[-1]
        assert nats == pytest.approx(now[prompt[place]]) and greedy == (max(now) == now[prompt[place]])


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


@pytest.mark.parametrize("owner", ["vllm", "llamacpp"])
def test_what_does_not_fit_is_refused_before_it_is_sent_and_never_shortened(owner):
    (asked,) = requests(1)
    with Completions(counting, owner=owner, most=len(asked.prompt) + 5) as served:
        at = Endpoint(served.url, "model", CONFIG)
        with pytest.raises(InputError, match="11"):
            list(at.generate([asked]))
        assert len(served.asked) == 1
        served.states_length = False
        with pytest.raises(InputError, match="made 5 tokens of 6"):
            list(Endpoint(served.url, "model", CONFIG).generate([asked]))


@pytest.mark.parametrize("prompt", [(), (300,)], ids=["nothing", "past the vocabulary"])
def test_what_the_server_refuses_is_said_with_the_sample(prompt):
    with Completions(counting) as served, pytest.raises(InputError, match=r"odd.*HTTP 400"):
        list(Endpoint(served.url, "model", CONFIG).generate([Request("odd", prompt, 2)]))


def test_a_log_probability_that_is_not_finite_stops_with_the_samples_name():
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", CONFIG)
        served.next = [null]
        with pytest.raises(NonFiniteError, match="one"):
            list(at.generate([Request("one", (3, 4), 2)]))


@pytest.mark.parametrize("failures", [[503], ["dies"], [429, "dies"], ["slow"]])
def test_what_fails_for_a_moment_is_asked_again(failures, monkeypatch):
    monkeypatch.setattr(endpoint, "PATIENCE", 5)
    monkeypatch.setattr(endpoint, "LONGEST_ANSWER", 0.2)
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", CONFIG)
        served.next = list(failures)
        assert dict(at.generate([Request("one", (7, 8), 3)])) == {"one": [9, 10, 11]}


@pytest.mark.parametrize("failure", [500, "dies"])
def test_retries_end(failure):
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", CONFIG)
        served.next = [failure] * 1000
        with pytest.raises(InputError, match="give the same command again"):
            list(at.generate(requests()))
        count = len(served.asked)
        time.sleep(0.1)
        assert len(served.asked) <= count + 6  # nothing goes on after the error


def test_where_nothing_answers_is_said_at_once():
    with Completions(counting) as served:
        pass
    began = time.monotonic()
    with pytest.raises(InputError, match="does not answer"):
        Endpoint(served.url, "model", CONFIG)
    assert time.monotonic() - began < 2
