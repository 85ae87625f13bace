"""A server that computes what transformers does is told from one that makes a mistake, which is
named with where it begins."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from core import rope
from core.extend import extend, extend_checkpoint
from core.geometry import RopeGeometry
from core.huggingface.embedding import apply_scaling
from experiments.kit import texts
from tests.completions import WORDS, Completions, computed_by
from tests.models import byte_tokenizer, checkpoint, token_losses

L = 64
LONGER = 256  # s = 4, where YaRN's attention factor is 1.14
READ = LONGER - 1
GEOMETRY = RopeGeometry(16, 10000.0, L)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A model and its export by YaRN."""
    root = tmp_path_factory.mktemp("models")
    checkpoint(root / "toy", max_position_embeddings=L)
    extend_checkpoint(root / "toy", root / "toy-yarn", "yarn", 4)
    return root


def loaded(places, **options):
    return AutoModelForCausalLM.from_pretrained(places / "toy", **options)


def scaled(places, method="yarn", factor=4):
    return computed_by(extend(loaded(places), method, factor))


def without_attention_factor(places):
    yarn = rope.scale(GEOMETRY, "yarn", 4)
    plain = dataclasses.replace(yarn, attention_factor=1.0, stock=None)
    return computed_by(apply_scaling(loaded(places), GEOMETRY, plain, 4))


def of_another_length(places):
    """YaRN's where nobody states the original length, for which engines take L'."""
    yarn = rope.scale(dataclasses.replace(GEOMETRY, context_length=LONGER), "yarn", 4)
    return computed_by(apply_scaling(loaded(places), GEOMETRY, yarn, 4))


def by_half(places):
    return computed_by(extend(loaded(places, dtype=torch.bfloat16), "yarn", 4))


def from_position(first, right, wrong):
    """What is computed rightly before a position, and wrongly from there on."""
    return lambda ids: right(ids)[:first] + wrong(ids)[first:]


def of_other_weights(places):
    model = loaded(places)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
            parameter.add_(0.1 * parameter.std() * noise if parameter.ndim == 2 else 0)
    return computed_by(extend(model, "yarn", 4))


@pytest.mark.parametrize("owner", ["vllm", "llamacpp"])
@pytest.mark.parametrize("computes", [scaled, by_half])
def test_a_server_that_computes_the_same_agrees(call, places, owner, computes):
    """In bfloat16 it does, too; a server without the prompt's log-probabilities by its own
    tokens."""
    with Completions(computes(places), "x/toy-yarn", owner, LONGER) as served:
        status, out, err = call("check", served.url, "--model", places / "toy-yarn")
        assert status == 0, out + err
        assert "They agree" in out
        assert ("generated" in out) == (owner == "llamacpp")
        status, out, _ = call("check", served.url, "--model", places / "toy-yarn", "--json")
    found = json.loads(out)
    assert status == 0 and found["agrees"]
    assert found["within"]["tokens"] + found["beyond"]["tokens"] == (
        64 if owner == "llamacpp" else READ - 1
    )
    if computes is scaled:
        assert found["beyond"]["largest"] < 1e-4


def test_differences_are_those_of_the_losses(call, places):
    """By a pass of each model over the same text."""
    with Completions(scaled(places, "pi"), "toy", most=LONGER) as served:
        line = f"check {served.url} --method yarn --factor 4 --json --model"
        status, out, _ = call(line, places / "toy")
    ids = byte_tokenizer().encode(texts.books(1)[0].text[: 2 * LONGER])[:READ]
    pi, yarn = (token_losses(extend(loaded(places), method, 4), ids) for method in ("pi", "yarn"))
    half = extend(loaded(places, dtype=torch.bfloat16), "yarn", 4)
    found = json.loads(out)
    assert status == 1
    for name, differences in (
        ("within", np.abs(pi - yarn)[:L]),
        ("beyond", np.abs(pi - yarn)[L:]),
        ("bfloat16", np.abs(token_losses(half, ids) - yarn)),
    ):
        wanted = differences.mean(), differences.max()
        assert (found[name]["mean"], found[name]["largest"]) == pytest.approx(wanted, rel=1e-3)


WRONG = {
    "the model without scaling": lambda places: scaled(places, "original"),
    "pi at s = 4": lambda places: scaled(places, "pi"),
    "YaRN at s = 2": lambda places: scaled(places, factor=2),
    "YaRN at s = 8": lambda places: scaled(places, factor=8),
    "YaRN without its attention factor": without_attention_factor,
    "YaRN as if L' were the original length": of_another_length,
}


@pytest.mark.parametrize("owner", ["vllm", "llamacpp"])
@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_named(call, places, owner, mistake):
    with Completions(WRONG[mistake](places), "toy-yarn", owner, LONGER) as served:
        status, out, err = call("check", served.url, "--model", places / "toy-yarn")
    assert status == 1, out + err
    assert "within L already" in out
    assert f"The server computes {mistake}:" in out


@pytest.mark.parametrize(("by", "token"), [(1, "before"), (-1, "after")])
def test_losses_of_the_neighbours_are_told(call, places, by, token):
    def shift(nats):
        nats[1:] = np.roll(nats[1:], -by).tolist()

    with Completions(scaled(places), "toy-yarn", most=LONGER) as served:
        served.next = [None, of_a_prompt(shift)]
        status, out, _ = call("check", served.url, "--model", places / "toy-yarn")
    assert status == 1
    assert f"given for the token {token}:" in out


@pytest.mark.parametrize("first", [100, 200])
def test_it_says_from_which_position_on(call, places, first):
    changes = from_position(first, scaled(places), scaled(places, "original"))
    with Completions(changes, "toy-yarn", most=LONGER) as served:
        status, out, _ = call("check", served.url, "--model", places / "toy-yarn", "--json")
    found = json.loads(out)
    assert status == 1
    assert first <= found["position"] < first + 8
    assert found["nearest"]["mistake"] == "the model without scaling"
    assert found["within"]["largest"] < 1e-4


def test_what_no_mistake_explains_is_said_and_may_be_let_pass(call, places):
    with Completions(of_other_weights(places), "toy-yarn", most=LONGER) as served:
        line = ["check", served.url, "--model", places / "toy-yarn"]
        status, out, _ = call(*line)
        assert status == 1
        assert "--tolerance" in out
        assert call(*line, "--tolerance", 10)[0] == 0


def of_a_prompt(change):
    """What changes the list of log-probabilities in an answer."""
    return lambda answer: change(answer["choices"][0]["logprobs"]["token_logprobs"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda nats: nats.__setitem__(100, None), "not finite"),
        (lambda nats: nats.pop(100), "log-probabilities"),
    ],
)
def test_what_is_no_number_for_each_token_is_refused(refusal, places, change, says):
    with Completions(scaled(places), "toy-yarn", most=LONGER) as served:
        served.next = [None, of_a_prompt(change)]
        assert says in refusal(f"check {served.url} --model {places / 'toy-yarn'}")


@pytest.mark.parametrize(
    ("how", "arguments", "says"),
    [
        ({"most": L}, "--model {}/toy-yarn", "--max-model-len"),
        ({"most": L + 1}, "--model {}/toy-yarn", "--max-model-len"),
        ({"most": L + 2}, "--model {}/toy-yarn", "--max-model-len"),
        ({}, "--model {}/toy", "--method"),
        ({}, "--model {}/toy-yarn --factor 2", "--method"),
        ({}, "--model {}/toy --n-hat 4", "--method"),
        ({}, "--model {}/toy --method pi yarn", "one --method"),
        ({}, "--model {}/toy --method by-length --of pi", "length"),
        ({"models": [{"id": "a"}, {"id": "b"}]}, "--model {}/toy-yarn", "not toy-yarn"),
        ({"log_probs": lambda ids: [[math.nan] * WORDS] * len(ids)}, "--model {}/toy-yarn", "nan"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(refusal, places, how, arguments, says):
    right = scaled(places)
    with Completions(**{"log_probs": right, "name": "toy-yarn", "most": LONGER, **how}) as served:
        assert says in refusal(f"check {served.url} {arguments.format(places)}")
