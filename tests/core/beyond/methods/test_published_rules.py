"""Rules that others published, against transformers, their definitions written out, and hand-worked cases."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from core.errors import InputError
from core.extend import export, extend
from core.rope import scale
from tests.core.geometries import LLAMA2, SMOLLM2, factors, geometries, official
from tests.models import random_model

ANY = pytest.mark.parametrize("geometry", [LLAMA2, SMOLLM2])


@given(geometries, factors)
def test_ntk_is_transformers_dynamic_ntk_at_the_final_length(geometry, factor):
    longer = int(geometry.context_length * factor)
    inv_freq, _ = official(geometry, "dynamic", seq_len=longer, factor=1.0)
    assert scale(geometry, "ntk", factor).inv_freq == pytest.approx(inv_freq, rel=1e-5)


def test_ntk_keeps_the_first_pair_and_interpolates_the_last():
    scaling = scale(LLAMA2, "ntk", 4)
    assert scaling.inv_freq[0] == 1
    assert scaling.inv_freq[-1] == pytest.approx(LLAMA2.inv_freq[-1] / 4)


def test_llama3_is_transformers_own():
    config = LlamaConfig(
        hidden_size=4096,
        num_attention_heads=32,
        max_position_embeddings=8192,
        rope_parameters=scale(LLAMA2, "llama3", 2).stock | {"rope_theta": 10000.0},
    )
    theirs, attention_factor = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    np.testing.assert_allclose(scale(LLAMA2, "llama3", 2).inv_freq, theirs.double().numpy(), rtol=1e-6)
    assert attention_factor == scale(LLAMA2, "llama3", 2).attention_factor == 1.0


@ANY
@pytest.mark.parametrize("factor", [2, 4])
def test_mrrope_divides_step_by_step(geometry, factor):
    """Each pair between YaRN's limits adds one equal step to log λ, or one that is larger than the step before."""
    yarn = scale(geometry, "yarn", factor)
    changed = np.flatnonzero(~np.isclose(yarn.inv_freq, geometry.inv_freq))
    low, high = changed[0] - 1, np.flatnonzero(yarn.interpolated)[0]
    uniform, progressive = ([0.0] * geometry.pairs for _ in range(2))
    total = sum(range(1, high - low + 1))
    for pair in range(1, geometry.pairs):
        step = pair - low if low < pair <= high else 0
        uniform[pair] = uniform[pair - 1] + (1 / (high - low) if step else 0)
        progressive[pair] = progressive[pair - 1] + step / total
    for name, exponents in (("mrrope-uni", uniform), ("mrrope-pro", progressive)):
        found = scale(geometry, name, factor)
        np.testing.assert_allclose(geometry.inv_freq / found.inv_freq, factor ** np.array(exponents), rtol=1e-12)
        assert found.attention_factor == yarn.attention_factor
        assert (found.interpolated == yarn.interpolated).all()


@ANY
def test_the_critical_base_keeps_the_pair_that_turns_once(geometry):
    """At which (real) pair index the wavelength is L before, and L' after."""
    theta = scale(geometry, "ntk-critical", 2).inv_freq
    pairs = np.arange(geometry.pairs)
    before = np.interp(np.log(geometry.context_length), np.log(geometry.wavelength), pairs)
    after = np.interp(np.log(2 * geometry.context_length), np.log(2 * np.pi / theta), pairs)
    assert before == pytest.approx(after)


def test_longrope2_divides_by_s_from_the_critical_pair_on():
    by = LLAMA2.inv_freq / scale(LLAMA2, "longrope2", 4).inv_freq
    critical = np.flatnonzero(LLAMA2.wavelength > 4096)[0]  # the first that does not turn once
    assert critical == 46
    np.testing.assert_allclose(by[critical:], 4)
    assert by[0] == 1 and by[23] == pytest.approx(2) and (np.diff(by[:47]) > 0).all()  # halfway: √4
    assert (LLAMA2.inv_freq / scale(LLAMA2, "longrope2", 4, critical_pair=32).inv_freq)[32] == pytest.approx(4)


@ANY
def test_under_resonance_angles_repeat(geometry):
    found = scale(geometry, "yarn-resonance", 2)
    periods = np.round(2 * np.pi / found.inv_freq)
    np.testing.assert_allclose(np.cos(periods * found.inv_freq), 1)
    np.testing.assert_allclose(2 * np.pi / found.inv_freq, 2 * np.pi / scale(geometry, "yarn", 2).inv_freq, atol=0.5)
    assert found.stock is None and found.attention_factor == scale(geometry, "yarn", 2).attention_factor


@pytest.mark.parametrize(
    ("method", "options", "says"),
    [
        ("longrope2", {"critical_pair": 0}, "critical pair"),
        ("llama3", {"low_freq_factor": 4.0}, "low_freq_factor < high_freq_factor"),
        ("mrrope-pro", {"beta_slow": 32.0}, "beta_slow < beta_fast"),
    ],
)
def test_bad_options_are_refused(method, options, says):
    with pytest.raises(InputError, match=says):
        scale(LLAMA2, method, 2, **options)


def test_the_stock_type_of_transformers_says_it_all_where_there_is_one():
    types = {"ntk": "default", "ntk-critical": "default", "llama3": "llama3", "yarn-resonance": "longrope"}
    for method, kind in types.items():
        model = extend(random_model(), method, 2)
        assert model.config.rope_parameters["rope_type"] == kind


@ANY
@pytest.mark.parametrize(
    ("name", "given"), [("cope", None), ("cope", 1), ("cope", 7), ("hardclip", None), ("hardclip", 3)]
)
def test_the_slowest_pairs_are_clipped_as_the_authors_do(geometry, name, given):
    """Their constant is 20 of the 64 pairs of Llama 3 8B; the rest of their formula is a sum over single pairs here."""
    options = {} if given is None else {"clipped": given}
    found, count = scale(geometry, name, 2, **options), given or round(20 / 64 * geometry.pairs)
    expected = list(geometry.inv_freq)
    for place in range(count):
        pair = geometry.pairs - count + place
        share = math.cos(math.pi / 2 * place / (count - 1 or 1)) ** 2 if name == "cope" else 0  # (1 + cos x)/2
        expected[pair] *= share
    np.testing.assert_allclose(found.inv_freq, expected, rtol=1e-9, atol=1e-18)
    assert found.attention_factor == 1 and not found.interpolated.any()
    assert (found.inv_freq == scale(geometry, name, 4, **options).inv_freq).all()
    for wrong in (0, geometry.pairs + 1):
        with pytest.raises(InputError, match="clipped"):
            scale(geometry, name, 2, clipped=wrong)


def test_a_pair_that_stands_still_survives_an_export(tmp_path):
    """The reloaded model computes what a model with frequencies of exactly zero does, at far positions too."""
    model = extend(random_model(), "hardclip", 4, clipped=3)
    stated = export(model, tmp_path / "export") / "config.json"
    assert math.inf not in json.loads(stated.read_text(), parse_constant=float)["rope_parameters"]["long_factor"]
    loaded, zero = AutoModelForCausalLM.from_pretrained(stated.parent), random_model()
    zero.model.rotary_emb.inv_freq[-3:] = 0
    zero.model.rotary_emb.original_inv_freq = zero.model.rotary_emb.inv_freq
    far = {"position_ids": torch.tensor([[0, 3, 500, 200_000]])}
    tokens = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        expected = zero(tokens, **far).logits
        torch.testing.assert_close(loaded(tokens, **far).logits, expected)
        assert (loaded(tokens, **far).logits == model(tokens, **far).logits).all()
        assert not torch.allclose(random_model()(tokens, **far).logits, expected)
