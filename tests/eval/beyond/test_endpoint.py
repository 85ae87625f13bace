"""A server's answers are those of this process; what it cannot do, and what it does in silence, is
refused."""

import contextlib
import itertools
import json
import math
import time

import numpy as np
import pytest

from core.errors import InputError, NonFiniteError
from eval.beyond import endpoint
from eval.beyond.endpoint import Endpoint
from eval.generation import Request, generate
from tests.completions import Completions, computed_by, counting
from tests.models import random_model, token_losses

MODEL = random_model()
WORDS = MODEL.config.vocab_size
log_probs = computed_by(MODEL)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(endpoint, "PAUSE", 0.01)
    monkeypatch.setattr(endpoint, "TRIES", 4)


def requests(count=4, **more):
    rng = np.random.default_rng(0)
    return [
        Request(str(i), tuple(rng.integers(3, 300, 5 + i).tolist()), 4, **more)
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def stops():
    """Ids that are a third token of some answers and a first of others."""
    answers = dict(generate(MODEL, requests()))
    return frozenset({answers["0"][2], answers["1"][0]})


@pytest.mark.parametrize("owner", ["vllm", "llamacpp"])
def test_continuations_are_those_of_this_process(owner, stops):
    free = requests()
    stopped = requests(3, stop=stops)
    with Completions(log_probs, "elsewhere/model", owner) as served:
        answers = Endpoint(served.url, "elsewhere/model", WORDS).generate(free)
        assert dict(answers) == dict(generate(MODEL, free))
        cut = dict(Endpoint(f"{served.url}/v1/", "model", WORDS).generate(stopped))
        assert cut == dict(generate(MODEL, stopped)) and cut["1"] == []
    for body in served.asked:  # a penalty of the checkpoint's own would change greedy choices
        assert (body["temperature"], body["repetition_penalty"], body["logprobs"]) == (0, 1, 1)


@pytest.mark.parametrize("owner", ["vllm", "llamacpp"])
def test_a_prompts_log_probabilities_are_those_of_this_process(owner):
    (prompt,) = (request.prompt for request in requests(1))
    with Completions(log_probs, owner=owner) as served:
        scored = Endpoint(served.url, "model", WORDS).scored("text", prompt)
    if owner == "llamacpp":  # which gives those of new tokens alone
        assert scored is None
    else:
        losses = token_losses(MODEL, prompt)
        assert scored == pytest.approx((-losses).tolist(), abs=1e-5)


def test_the_models_own_ends_and_the_least_tokens_are_kept(stops, monkeypatch):
    least = requests(3, min_new_tokens=1)
    with Completions(log_probs) as served:
        answers = dict(Endpoint(served.url, "model", WORDS, stops).generate(least))
    monkeypatch.setattr(MODEL.generation_config, "eos_token_id", sorted(stops))
    assert answers == dict(generate(MODEL, least))
    with (
        Completions(log_probs, owner="llamacpp") as served,
        pytest.raises(InputError, match="min_tokens"),
    ):
        list(Endpoint(served.url, "model", WORDS, stops).generate(least))
    with Completions(log_probs) as served, pytest.raises(InputError, match="min_tokens"):
        at = Endpoint(served.url, "model", WORDS)
        served.next = [ends_at_once]
        list(at.generate(least[:1]))


def ends_at_once(answer):
    """Makes an answer one without a token, not even that which ends it."""
    answer["choices"] = [
        {"finish_reason": "stop", "token_ids": [], "logprobs": {"token_logprobs": []}}
    ]


def puts(value, *path):
    """What puts a value in place of one in an answer."""

    def change(answer):
        for key in path[:-1]:
            answer = answer[key]
        answer[path[-1]] = value

    return change


CHOICE = "choices", 0
NATS = *CHOICE, "logprobs", "token_logprobs"
OK = b"HTTP/1.1 200 OK\r\n"


def dripping():
    """A reply whose headers never end."""
    yield OK
    while True:
        time.sleep(0.05)
        yield b"a: b\r\n"


@pytest.mark.parametrize(
    ("how", "then", "fragment"),
    [
        ({"name": "base/other"}, None, "not base/model"),
        ({"name": "\x1b[31mbase/model"}, None, "pattern"),
        ({"models": [{"id": "base/model", "max_model_len": -1}]}, None, "max_model_len"),
        ({"models": []}, None, "no model"),
        ({}, 422, "llama-server"),
        ({"most": 4}, None, "made 1 tokens of 2"),
        ({}, puts(None, *CHOICE, "token_ids"), "SGLang"),
        ({}, puts(4, "usage", "prompt_tokens"), "4 tokens instead of 3"),
        ({"log_probs": lambda ids: [[math.nan] * 300]}, None, "not JSON compliant"),
        ({}, puts([6, 300], *CHOICE, "token_ids"), "300"),
        ({}, puts([], *NATS), "0 log-probabilities"),
        ({}, puts("other", "model"), "other"),
        ({}, iter([OK, b"\r\n", b"[" * 100_000]), "JSON"),
        ({}, itertools.chain([OK, b"\r\n"], itertools.repeat(b"0" * 2**16)), "bytes"),
        ({}, dripping(), "seconds"),
        ({}, "slow", "seconds"),
    ],
)
def test_a_server_that_cannot_do_what_is_needed_is_refused_at_once(
    how, then, fragment, monkeypatch
):
    if fragment == "seconds":
        monkeypatch.setattr(endpoint, "LONGEST_ANSWER", 0.2)
    with Completions(**{"log_probs": counting, "name": "base/model", **how}) as served:
        served.next = [then]
        with pytest.raises(InputError, match=fragment) as refused:
            Endpoint(served.url, "base/model", WORDS)
        assert len(served.asked) <= 1 and str(refused.value).isprintable()


KEY = "sk-'secret\\key"
SAYS_KEY = {
    "its owner": ({"owner": KEY}, None),
    "another model": ({"models": [{"id": KEY}]}, None),
    "the model of an answer": ({}, puts(KEY, "model")),
    "a quoted refusal": ({}, iter([b"HTTP/1.1 401 No\r\n\r\n", json.dumps(KEY).encode()])),
    "a broken line": ({}, iter([b"HTTP/1.1 Bearer ", KEY.encode(), b"\r\n\r\n"])),
    "much": ({"owner": f"{KEY} " * 30_000}, puts("other", "model")),
}


@pytest.mark.parametrize("where", SAYS_KEY)
def test_what_a_server_says_is_shown_in_a_line_without_the_key(where, monkeypatch):
    how, then = SAYS_KEY[where]
    monkeypatch.setattr(endpoint, "TRIES", 1)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Completions(counting, **how) as served:
        served.next = [then]
        served.fingerprint = KEY
        try:
            at = Endpoint(served.url, "model", WORDS)
        except InputError as error:
            said = str(error)
        else:
            said = f"{at.server} {at.fingerprint}"
    assert "secret" not in said and "…" in said and len(said) < 500


def test_a_key_is_stripped_or_refused(monkeypatch):
    with Completions(counting) as served:
        monkeypatch.setenv("OPENAI_API_KEY", " sk-secret\n")
        Endpoint(served.url, "model", WORDS)
        assert served.keys == ["Bearer sk-secret"]
    for key in ("sk secret", "sk-\nsecret", "sk-sécret", "sk-secret\x07."):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(InputError, match=r"^OPENAI_API_KEY[^é\n\x07]*$") as refused:
            Endpoint(served.url, "model", WORDS)
        assert "sk" not in str(refused.value) and "cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("then", "error", "fragment"),
    [
        ([429, "dies", 503], None, ""),
        *(
            ([puts(ended, *CHOICE, "finish_reason")] * 3, None, "")
            for ended in ("abort", "content_filter", "", None)
        ),
        ([puts("error", *CHOICE, "finish_reason")] * 4, InputError, "one .*ends by 'error'"),
        ([puts("vllm-0.2", "system_fingerprint")], InputError, "another than before"),
        ([puts([0.0, 0.0, None], *NATS)], NonFiniteError, "one.*not finite"),
    ],
)
def test_what_fails_for_a_moment_or_is_broken_off_is_asked_again_and_all_else_ends(
    then, error, fragment
):
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", WORDS)
        served.next = then
        with pytest.raises(error, match=fragment) if error else contextlib.nullcontext():
            assert dict(at.generate([Request("one", (7, 8), 3)])) == {"one": [9, 10, 11]}
        assert not served.next


def test_retries_end_and_nothing_goes_on_after_the_error():
    with Completions(counting) as served:
        at = Endpoint(served.url, "model", WORDS)
        served.next = [500] * 1000
        with pytest.raises(InputError, match="give the same command again"):
            list(at.generate(requests()))
        count = len(served.asked)
        time.sleep(0.1)
        assert len(served.asked) <= count + len(requests())
    with pytest.raises(InputError, match="does not answer"):  # and where nothing listens, at once
        Endpoint(served.url, "model", WORDS)
