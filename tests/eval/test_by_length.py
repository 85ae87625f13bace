"""Where RoPE follows the input's length, a score is that of the input alone, whatever shares its
batch or its cache."""

import copy
import itertools

import pytest
import torch
from lm_eval.api.instance import Instance

from core.huggingface import rotation
from eval import generation, perplexity
from eval.generation import Request, generate
from eval.open_llm import SharedPrefixLM
from eval.perplexity import position_losses, window_losses
from tests.core.clex_models import clex_model, rotary
from tests.models import byte_tokenizer, random_model, tokens

L = 32
FACTORS = {
    "short_factor": [1.0] * 8,
    "long_factor": [1.0 + i for i in range(8)],
    "original_max_position_embeddings": L,
}
MODELS = {
    "clex": lambda: clex_model(max_position_embeddings=L),
    "dynamic": lambda: stock(L, rope_type="dynamic"),
    "longrope": lambda: stock(4 * L, rope_type="longrope", **FACTORS),
}
KINDS = pytest.mark.parametrize("kind", MODELS)


def stock(longest, **rope):
    return random_model(
        max_position_embeddings=longest, rope_parameters={"rope_theta": 1e4, "factor": 4.0, **rope}
    )


@torch.inference_mode()
def logits(model, ids, length):
    """In one pass of a model that has read nothing yet; what follows the ids only makes the input
    so long."""
    filled = torch.nn.functional.pad(torch.as_tensor(ids), (0, length - len(ids)), value=5)
    return copy.deepcopy(model)(filled[None], use_cache=False).logits[0, : len(ids)]


def assert_unchanged(model, kind):
    if kind == "clex":
        assert rotary(model).pinned is None
    else:
        assert model.model.rotary_emb.rope_type == kind


@KINDS
def test_generation(monkeypatch, kind):
    """As by full passes, each at the scale of the prompt and of all that may be generated."""
    monkeypatch.setattr(generation, "PREFILL_CHUNK", 8)
    monkeypatch.setattr(generation, "FIRST_PASS", 8)
    model = MODELS[kind]()
    text = tokens(3 * L)[0].tolist()
    new = 2
    prompts = [text[:count] for count in (90, 20, 70, 28, 10)]
    prompts.append(text[:20] + text[50:70])
    requests = [Request(str(i), tuple(prompt), new) for i, prompt in enumerate(prompts)]
    answers = dict(generate(model, requests))
    for request in requests:
        ids = list(request.prompt)
        for _ in range(new):
            token = int(logits(model, ids, len(request.prompt) + new)[-1].argmax())
            if token == 2:
                break
            ids.append(token)
        assert answers[request.key] == ids[len(request.prompt) :]
    assert_unchanged(model, kind)


@KINDS
def test_losses(monkeypatch, kind):
    monkeypatch.setattr(perplexity, "CHUNK", 8)
    model = MODELS[kind]()
    text = tokens(3 * L)[0]
    spans = [(0, 90, 1), (0, 50, 1), (4, 25, 5), (0, 60, 40)]
    losses = [window_losses(model, text, span) for span in spans]
    losses.append(position_losses(model, text[: L + 2]))
    for found, (begin, end, first) in zip(losses, [*spans, (0, L + 2, 1)]):
        read = text[begin:end]
        scores = logits(model, read[:-1], len(read) - 1)
        expected = torch.nn.functional.cross_entropy(scores, read[1:], reduction="none")
        assert found == pytest.approx(expected[first - begin - 1 :].numpy(), abs=1e-3)
    assert_unchanged(model, kind)


@KINDS
def test_log_likelihoods(kind):
    stem = "a preamble that all of them share, "
    model = MODELS[kind]()
    questions = [stem[:3] + "x", stem[:3] + "yes or no", stem + "x", stem + "yes or no"]
    pairs = list(itertools.product(questions, (" no", " so" * 9)))
    lm = SharedPrefixLM(
        pretrained=model, tokenizer=byte_tokenizer(), batch_size=8, softmax_dtype="float32"
    )
    requests = [Instance("loglikelihood", {}, pair, 0) for pair in pairs]
    factors = set()
    for (question, answer), (value, _) in zip(pairs, lm.loglikelihood(requests, disable_tqdm=True)):
        ids = torch.tensor(lm.tok_encode(question + answer))[-(lm.max_length + 1) :]
        factors.add(rotation.scale_for(model, len(ids) - 1))
        scores = logits(model, ids[:-1], len(ids) - 1).log_softmax(-1)
        expected = scores.gather(1, ids[1:, None])[-len(answer) :].sum()
        assert value == pytest.approx(expected.item(), abs=1e-2)
    assert len(factors) >= 2 or kind == "dynamic"  # whose model reads no more than L
