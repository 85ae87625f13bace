"""What vLLM is told: sampling parameters, which stops are returned, and the frequencies beyond L'."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from core import rope
from core.errors import InputError
from core.extend import export, extend
from core.huggingface.embedding import rotary_modules
from eval.engines.vllm import Vllm, overrides
from eval.engines.worker import Worker, cause
from eval.generation import Request, generate
from tests.models import byte_tokenizer, checkpoint, random_model
from tests.vllm_stub import worker_module

ECHO = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
held = []
for line in sys.stdin:
    held.append(json.loads(line))
    if len(held) == %d:
        for request in held[::-1]:
            print(json.dumps({"key": request["key"], "double": 2 * request["key"]}), flush=True)
        held = []
"""


def echo(tmp_path, at_once):
    return Worker("echo", [sys.executable, "-I", "-c", ECHO % at_once], tmp_path / "logs" / "echo.log", {})


def test_answers_come_in_any_order_and_none_is_lost(tmp_path):
    with echo(tmp_path, at_once=5) as worker:
        for _ in range(2):  # a worker serves one batch after another
            found = [(answer["key"], answer["double"]) for answer in worker.ask({"key": k} for k in range(2000))]
            assert sorted(found) == [(k, 2 * k) for k in range(2000)] and found != sorted(found)
        assert list(worker.ask([])) == []
    assert worker.process.poll() == 0


def test_the_cause_is_the_first_error_that_a_log_names(tmp_path):
    log = tmp_path / "log"
    for text, expected in {
        "INFO a\n(Core pid=1) ERROR [x.py:3] torch.OutOfMemoryError: CUDA out of memory.\nRuntimeError: see above\n": (
            "torch.OutOfMemoryError: CUDA out of memory"
        ),
        "loading\nKilled\n": "Killed",
        "": "",
    }.items():
        log.write_text(text)
        assert cause(log) == expected


def test_a_request_in_vllms_words():
    worker = worker_module()
    request = {"key": "a", "prompt": [5, 6], "stop": [2, 9], "new": 7, "least": 1}
    asked = worker.sampling(request)
    assert (asked["temperature"], asked["max_tokens"], asked["min_tokens"]) == (0, 7, 1)
    assert asked["stop_token_ids"] == [2, 9] and asked["ignore_eos"]

    def made(tokens, total=-1.0):
        return worker.continuation(request, SimpleNamespace(token_ids=tokens, cumulative_logprob=total))

    assert made([4, 2])["tokens"] == [4] and made([9])["tokens"] == [] and made([4, 4])["tokens"] == [4, 4]
    assert made([2, 4])["tokens"] == [2, 4]  # no stop while more tokens had to come
    assert made([4])["finite"] and not made([4], math.nan)["finite"] and not made([4], -math.inf)["finite"]


def test_requests_carry_the_models_own_stops(tmp_path):
    directory = checkpoint(tmp_path / "model")
    asked = []

    class Kept:
        def ask(self, requests):
            for request in requests:
                asked.append(request)
                yield {"key": request["key"], "tokens": [1], "finite": True}

        def __enter__(self):
            return self

        def __exit__(self, *_):
            starts.append("closed")

    starts = []

    def start(work, length, overrides):
        starts.append((work, length, overrides))
        return Kept()

    with Vllm(directory, byte_tokenizer(), start) as engine:
        assert engine.context_length == 128
        requests = [Request("b", (7, 8), 4), Request("a", (3, 4, 5), 2, frozenset([9]), 1)]
        assert dict(engine.generate(requests)) == {"a": [1], "b": [1]}
        assert [(r["key"], r["stop"], r["new"], r["least"]) for r in asked] == [("a", [2, 9], 2, 1), ("b", [2], 4, 0)]
        list(engine.generate([Request("c", (3,) * 150, 10)]))
    longer = {"max_position_embeddings": 160}
    assert starts == [("continue", 128, {}), "closed", ("continue", 160, longer), "closed"]


def vllms_table(config, stated, length):
    """cos and sin as vLLM 0.32 computes them of a LongRoPE: `Phi3LongRoPEScaledRotaryEmbedding`."""
    parameters = stated["rope_parameters"]
    dim = config.hidden_size // config.num_attention_heads
    factors = np.array(parameters["long_factor"])
    inv_freq = 1 / (factors * parameters["rope_theta"] ** (np.arange(0, dim, 2) / dim))
    angles = np.outer(np.arange(length), inv_freq)
    return np.cos(angles) * parameters["long_mscale"], np.sin(angles) * parameters["long_mscale"]


@pytest.mark.parametrize("method", [rope.OURS, rope.RIVAL])
def test_positions_beyond_the_context_keep_their_frequencies(method, tmp_path):
    export(extend(random_model(), method, 2), tmp_path / "export", byte_tokenizer())
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "export")
    config, length = loaded.config, 320  # 1.25 L'
    assert overrides(config, 256) == {}
    stated = overrides(config, length)
    _, _, rotary = rotary_modules(loaded)[0]
    cos, sin = rotary(torch.zeros(1), torch.arange(length)[None])
    for found, expected in zip(vllms_table(config, stated, length), (cos, sin)):
        assert np.allclose(found, expected[0, :, : found.shape[1]].numpy(), atol=1e-4)
    # And what transformers makes of the same words.
    again = AutoConfig.from_pretrained(tmp_path / "export")
    again.update(stated)
    _, _, other = rotary_modules(AutoModelForCausalLM.from_config(again))[0]
    assert np.allclose(other(torch.zeros(1), torch.arange(length)[None])[0], cos, atol=1e-4)


def test_scalings_whose_table_vllm_makes_longer_by_itself(tmp_path):
    for method in (rope.ORIGINAL, rope.UNIT):
        config = extend(random_model(), method, 2).config
        assert overrides(config, 300) == {"max_position_embeddings": 300}
    with pytest.raises(InputError, match="transformers"):
        overrides(extend(random_model("Phi3Config"), rope.OURS, 2).config, 300)


def test_the_stub_and_the_project_agree_on_greedy_continuations(tmp_path):
    """What the other tests call the same answers: stops, least tokens and most tokens by transformers' `generate`."""
    from tests.vllm_stub import Llm

    model = random_model()
    generator = torch.Generator().manual_seed(0)
    prompts = [tuple(torch.randint(3, 259, (length,), generator=generator).tolist()) for length in (5, 9, 30)]
    free = dict(generate(model, [Request(str(i), p, 8) for i, p in enumerate(prompts)]))
    worker, stub = worker_module(), object.__new__(Llm)
    stub.model = model
    for i, prompt in enumerate(prompts):
        for stop, least in ((frozenset([free[str(i)][3]]), 0), (frozenset([free[str(i)][0]]), 1), (frozenset(), 0)):
            request = Request("a", prompt, 8, stop, least)
            asked = {"key": "a", "stop": sorted(stop | {2}), "new": 8, "least": least}
            tokens = stub.continued(list(prompt), SimpleNamespace(**worker.sampling(asked)))
            made = worker.continuation(asked, SimpleNamespace(token_ids=tokens, cumulative_logprob=0.0))
            assert made["tokens"] == dict(generate(model, [request]))["a"]
