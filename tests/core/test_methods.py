"""Methods since YaRN, against transformers, against their definitions written out, and against hand-worked cases."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from core import rope
from core.angles import angle_distribution
from core.disturbance import disturbance
from core.errors import InputError
from core.extend import export, extend
from core.geometry import RopeGeometry
from core.rope import scale
from tests.models import random_model

LLAMA2 = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)
SMOLLM2 = RopeGeometry(head_dim=64, base=100000.0, context_length=8192)
ANY = pytest.mark.parametrize("geometry", [LLAMA2, SMOLLM2])


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
    found = scale(geometry, "yarn", 2, resonance=True)
    periods = np.round(2 * np.pi / found.inv_freq)
    np.testing.assert_allclose(np.cos(periods * found.inv_freq), 1)
    np.testing.assert_allclose(2 * np.pi / found.inv_freq, 2 * np.pi / scale(geometry, "yarn", 2).inv_freq, atol=0.5)
    assert found.stock is None and found.attention_factor == scale(geometry, "yarn", 2).attention_factor


@ANY
def test_every_pair_takes_the_least_disturbing_candidate(geometry):
    candidates = ("original", "pi", "ntk", "yarn")
    before = angle_distribution(geometry.inv_freq, geometry.context_length)
    found = scale(geometry, rope.OURS, 2, candidates=candidates).inv_freq
    offered = [scale(geometry, name, 2).inv_freq for name in candidates]
    for pair in range(geometry.pairs):
        moved = [
            disturbance(angle_distribution(own[pair : pair + 1], 2 * geometry.context_length), before[pair : pair + 1])[
                0
            ]
            for own in offered
        ]
        assert found[pair] == offered[int(np.argmin(moved))][pair]


@ANY
def test_two_candidates_are_the_papers_method(geometry):
    found = scale(geometry, rope.OURS, 2, candidates=["original", "pi"])
    assert (found.inv_freq == scale(geometry, rope.OURS, 2).inv_freq).all()


@ANY
def test_covered_interpolates_what_has_not_turned_once(geometry):
    found = scale(geometry, rope.COVERED, 2)
    once = geometry.inv_freq * geometry.context_length >= 2 * np.pi
    np.testing.assert_array_equal(found.inv_freq, np.where(once, geometry.inv_freq, geometry.inv_freq / 2))
    assert found.attention_factor == scale(geometry, "yarn", 2).attention_factor
    shorter = scale(geometry, rope.COVERED, 2, covered_length=geometry.context_length // 4)
    assert (shorter.interpolated >= found.interpolated).all() and shorter.interpolated.sum() > found.interpolated.sum()


@pytest.mark.parametrize("form", ["list", "factors", "long_factor"])
def test_factors_from_a_file_are_taken_as_they_are(tmp_path, form):
    model = random_model("LlamaConfig")
    geometry = RopeGeometry(16, 10000.0, 128)
    by = np.linspace(1, 3, geometry.pairs)
    stated = by.tolist() if form == "list" else {form: by.tolist(), "attention_factor": 1.25, "whatever": None}
    (file := tmp_path / "f.json").write_text(json.dumps(stated))
    found = scale(geometry, rope.GIVEN, 2, file=file)
    np.testing.assert_allclose(found.inv_freq, geometry.inv_freq / by)
    assert found.attention_factor == pytest.approx(1.25 if form != "list" else np.sqrt(1 + np.log(2) / np.log(128)))
    extend(model, rope.GIVEN, 2, file=str(file))
    export(model, tmp_path / "exported")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "exported").model.rotary_emb
    np.testing.assert_allclose(loaded.inv_freq, found.inv_freq, rtol=1e-6)
    assert loaded.attention_scaling == pytest.approx(found.attention_factor)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[1, 2]", "no list of 64 factors"),
        ("{}", "no list of 64 factors"),
        ('{"factors": "1"}', "no list of 64 factors"),
        (json.dumps([0.0] * 64), "from 0.001"),
        (json.dumps([1.0] * 63 + [1e-320]), "from 0.001"),
        (json.dumps([1.0] * 63 + [1e7]), "from 0.001"),
        (json.dumps([1.0] * 63 + ["a"]), "finite numbers"),
        (json.dumps({"factors": [1.0] * 64, "attention_factor": -1}), "attention factor"),
        (json.dumps({"factors": [1.0] * 64, "attention_factor": "1"}), "attention factor"),
        ("[1,", "cannot read"),
        ("7", "cannot read"),
    ],
)
def test_bad_files_of_factors_are_refused(tmp_path, content, says):
    (file := tmp_path / "f.json").write_text(content)
    with pytest.raises(InputError, match=says):
        scale(LLAMA2, rope.GIVEN, 2, file=file)


@pytest.mark.parametrize(
    ("method", "options", "says"),
    [
        (rope.GIVEN, {}, "needs its option file"),
        (rope.GIVEN, {"file": "/nowhere.json"}, "no file /nowhere.json"),
        (rope.OURS, {"candidates": ("original",), "n_hat": 4}, "along with"),
        (rope.OURS, {"candidates": ("clex",)}, "more than its name"),
        (rope.OURS, {"candidates": ("none",)}, "unknown method"),
        (rope.OURS, {"candidates": "pi"}, "a list"),
        (rope.COVERED, {"covered_length": 0}, "covered length"),
        (rope.COVERED, {"covered_length": 4097}, "covered length"),
        ("yarn", {"resonance": 1}, "True or False"),
        ("clex", {"resonance": True}, "no option 'resonance'"),
        ("longrope2", {"critical_pair": 0}, "critical pair"),
        ("llama3", {"low_freq_factor": 4.0}, "low_freq_factor < high_freq_factor"),
        ("mrrope-pro", {"beta_slow": 32.0}, "beta_slow < beta_fast"),
    ],
)
def test_bad_options_are_refused(method, options, says):
    with pytest.raises(InputError, match=says):
        scale(LLAMA2, method, 2, **options)
