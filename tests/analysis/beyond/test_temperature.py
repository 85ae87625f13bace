"""A setting with a given attention factor beside the same without."""

import math

import pytest

from analysis.beyond import temperature
from tests.analysis.made import on_texts


def test_a_setting_with_an_attention_factor_stands_beside_the_same_without(made):
    settings = [("yarn", {}), ("yarn", {"attention_factor": 1.0}), ("dprope", {"n_hat": 28})]
    settings += [("dprope", {"n_hat": 28, "attention_factor": 1.0693}), ("pi", {}), ("dprope", {})]
    settings += [("my-method", {}), ("my-method", {"attention_factor": 1.5})]
    for place, (method, options) in enumerate(settings):
        by_length = [{"length": n, "mean": 0.1 * place, "low": 0.0, "high": 1.1, "n": 10} for n in (8192, 16384)]
        losses = {n: {"A": math.log(n / 1024 + place)} for n in (4096, 8192, 16384)}
        made.add("passkey", method, {"by_length": by_length}, options=options)
        if method != "my-method":
            made.add("perplexity", method, options=options, **on_texts(losses))
    by_factor, left_out = temperature.rows(made.results(), trained=False)
    found = {setting.name: scores for setting, scores in by_factor[2.0].items()}
    names = ["YaRN", "YaRN, attention × 1.00", "DPRoPE (n̂ = 28)", "DPRoPE (n̂ = 28), attention × 1.07"]
    assert list(found) == [*names, "my-method", "my-method, attention × 1.50"] and not left_out
    assert list(found["YaRN"]) == ["perplexity, 8k", "perplexity, 16k", "passkeys, 8k", "passkeys, 16k"]
    assert [found[name]["perplexity, 16k"].mean for name in names] == pytest.approx([16, 17, 18, 19])
    last = found[names[3]]["passkeys, 16k"]
    assert (last.mean, last.low, last.high) == (pytest.approx(30), 0, 100)  # no more can be found
    assert list(found["my-method"]) == ["passkeys, 8k", "passkeys, 16k"]
