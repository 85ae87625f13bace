"""Where the RoPE scale follows the input's length, no score depends on what shares its batch or cache."""

import pytest
import torch
from lm_eval.api.instance import Instance

from core import clex
from eval import generation, position_loss
from eval.generation import Request, generate
from eval.log_likelihood import SharedPrefixLM
from eval.position_loss import position_losses
from tests.core.test_clex import L, clex_model, full_logits, rotary, tokens
from tests.models import byte_tokenizer


def greedy(model, prompt, new):
    """Full passes alone, all at the scale of the prompt and everything that may be generated."""
    made = torch.tensor([prompt])
    with clex.at_length(model, len(prompt) + new):
        while made.shape[1] < len(prompt) + new:
            token = full_logits(model, made)[:, -1:].argmax(-1)
            if token.item() == 2:
                break
            made = torch.cat([made, token], 1)
    return made[0, len(prompt) :].tolist()


@pytest.mark.parametrize("cache_tokens", [1, 10**6])
def test_generation_is_that_of_each_prompt_alone(monkeypatch, cache_tokens):
    monkeypatch.setattr(generation, "PREFILL_CHUNK", 8)
    monkeypatch.setattr(generation, "FIRST_PASS", 8 if cache_tokens == 1 else 10**6)
    model, start = clex_model(), tokens(30)[0].tolist()
    prompts = [
        tuple(start[:shared] + tokens(own, seed=own)[0].tolist()) for shared in (0, 10, 30) for own in (1, 5, 20)
    ]
    requests = [Request(str(i), prompt, 3 + 5 * (i % 3)) for i, prompt in enumerate(prompts)]
    assert len({clex.factor_for(model, len(r.prompt) + r.max_new_tokens) for r in requests}) >= 3
    found = dict(generate(model, requests, cache_tokens))
    for request in requests:
        assert found[request.key] == greedy(model, request.prompt, request.max_new_tokens)
    assert rotary(model).pinned is None  # nothing stays behind


@pytest.mark.parametrize("length", [L - 1, L, L + 1, 3 * L + 5])
def test_losses_of_a_text_read_in_chunks_are_those_of_one_pass(monkeypatch, length):
    monkeypatch.setattr(position_loss, "CHUNK", 12)
    model, text = clex_model(), tokens(length + 1)[0]
    logits = full_logits(model, text[None, :-1])[0]
    expected = torch.nn.functional.cross_entropy(logits, text[1:], reduction="none")
    assert position_losses(model, text) == pytest.approx(expected.numpy(), abs=1e-3)


def test_log_likelihoods_are_those_of_each_answer_alone():
    model = clex_model(factor=8)
    stem = "a preamble that all of them share, "
    pairs = [
        (stem[:cut] + more, answer)
        for cut in (3, 35)
        for more in ("x", "yes or no")
        for answer in (" no", " it is so" * 3)
    ]
    requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
    lm = SharedPrefixLM(pretrained=model, tokenizer=byte_tokenizer(), batch_size=8, softmax_dtype="float32")
    found = lm.loglikelihood(requests, disable_tqdm=True)
    factors = set()
    for (context, answer), (value, _) in zip(pairs, found):
        ids = torch.tensor([lm.tok_encode(context + answer)])
        factors.add(clex.factor_for(model, ids.shape[1] - 1))
        scores = full_logits(model, ids[:, :-1])[0].log_softmax(-1)
        expected = scores.gather(1, ids[0, 1:, None])[-len(answer) :].sum().item()
        assert value == pytest.approx(expected, abs=1e-2)
    assert len(factors) >= 3
