"""CLEX: its ODE against SciPy, finite differences and NTK-aware scaling; its
embedding in training and evaluation; and a model that has it, exported, saved, restored, replaced
and refused."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from transformers import AutoModelForCausalLM

from core import clex
from core.clex import ode
from core.clex.rotary import ClexRotaryEmbedding
from core.errors import InputError
from core.extend import export, extend
from core.huggingface import rotation
from core.huggingface.embedding import rope_geometry
from tests.core.clex_models import (
    GEOMETRY,
    SHORT,
    L,
    clex_model,
    full_logits,
    matrices,
    rotary,
)
from tests.models import random_model, tokens


def scale_free(geometry, t):
    """ln θ̂ under NTK-aware scaling by α = 2t − 1, which raises the base to base·α^(d/(d−2))."""
    d = geometry.head_dim
    return -np.arange(0, d, 2) / d * np.log(geometry.base * (2 * t - 1) ** (d / (d - 2)))


@pytest.mark.parametrize("t", [1.5, 16])
def test_with_nothing_learnt_it_is_ntk_aware_scaling_by_alpha(t):
    up, down = matrices(GEOMETRY)
    solved = ode.solve(up, 0 * down, GEOMETRY, t).log().numpy()
    assert solved == pytest.approx(scale_free(GEOMETRY, t), abs=1e-12)
    fresh = ClexRotaryEmbedding(GEOMETRY)
    assert fresh.scaling(t).inv_freq == pytest.approx(np.exp(scale_free(GEOMETRY, np.ceil(t))))


def test_where_nothing_is_solved_both_matrices_have_a_gradient_of_zeros():
    up, down = (matrix.requires_grad_() for matrix in matrices(GEOMETRY))
    solved = ode.solve(up, down, GEOMETRY, 1)
    assert solved.tolist() == pytest.approx(GEOMETRY.inv_freq.tolist())
    solved.sum().backward()
    assert not up.grad.any() and not down.grad.any()


def test_the_solution_is_scipys_and_its_gradients_are_those_of_finite_differences():
    up, down = matrices(GEOMETRY)

    def change(t, z):
        z_of_ntk = scale_free(GEOMETRY, t)
        slope_of_ntk = -np.arange(0, 16, 2) / 14 * 2 / (2 * t - 1)
        return down.numpy() @ np.tanh(up.numpy() @ (z + z_of_ntk)) + slope_of_ntk

    before = np.log(GEOMETRY.inv_freq)
    expected = solve_ivp(change, (1, 4), before, rtol=1e-11, atol=1e-11).y[:, -1]
    solved = ode.solve(up, down, GEOMETRY, 4).log()
    assert solved.numpy() == pytest.approx(expected, abs=1e-8)
    for matrix in (up, down):
        matrix.requires_grad_()

    def middle(up, down):
        return ode.solve(up, down, GEOMETRY, 1.2).log()

    assert torch.autograd.gradcheck(middle, (up, down), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("length", [2, L, 2 * L, 3 * L + 5])
def test_draws_are_those_of_the_authors_class(length):
    """As CLEX/clex_layer.py computes them: `sample_random_times`, `get_random_position_ids` and
    what forward adds."""
    embedding = rotary(clex_model())
    generator = torch.Generator().manual_seed(0)
    theirs = torch.Generator().manual_seed(0)
    seen = set()
    times = max(length // L, 1)
    for _ in range(100):
        t, positions = embedding.draw(length, generator)
        seen.add(t)
        assert t == int(torch.randint(1, 17, (1,), generator=theirs)[0])
        drawn = torch.randperm(length * t - 2, generator=theirs)[: length - 2].sort().values
        inside = ((drawn.float() + 1) / times).tolist()
        assert positions.tolist() == [0.0, *inside, length * t // times - 1]
    assert seen == set(range(1, 17))
    assert len(embedding.draw(1)[1]) == 1


def test_a_samples_draw_is_its_own_whatever_shares_its_batch_and_wherever_a_run_begins():
    embedding = rotary(clex_model())

    def drawn(draws, samples):
        made = draws.of(samples, embedding, 20)
        return [(t, positions.tolist()) for t, positions in made]

    every = drawn(clex.Draws(3), range(12))
    assert len({t for t, _ in every}) > 4
    assert drawn(clex.Draws(4), range(12)) != every
    draws = clex.Draws(3)
    for start in (0, 8):  # other processes take what is between
        for _ in range(2):  # as a pass that is recomputed asks again
            assert drawn(draws, range(start, start + 4)) == every[start : start + 4]
    for sample in (11, 2, 7):  # backwards too, from the beginning
        assert drawn(draws, [sample]) == [every[sample]]


def test_rows_of_a_batch_train_as_each_does_alone():
    model = clex_model().train()
    ids = tokens(40, rows=3)
    samples = [4, 0, 9]
    draws = clex.Draws(1)
    with clex.drawing(model, draws, samples):
        together = model(ids).logits
    for row, sample in enumerate(samples):
        with clex.drawing(model, draws, [sample]):
            alone = model(ids[row : row + 1]).logits
        assert torch.allclose(alone[0], together[row], atol=1e-4)
    assert not torch.allclose(together[0], together[1], atol=0.1)
    assert rotary(model).drawn is None  # nothing stays behind


def test_changed_weights_are_solved_anew_and_a_cast_keeps_them_float32():
    model = clex_model()
    ids = tokens(3 * L)
    before = full_logits(model, ids)
    rotary(model).down.data.mul_(0.5)
    assert not torch.equal(full_logits(model, ids), before)
    rotary(model).down.data.mul_(2)
    assert torch.equal(full_logits(model, ids), before)
    before = [rotary(model).up.clone(), rotary(model).down.clone()]
    model.to(torch.bfloat16).half().bfloat16()
    for kept, old in zip((rotary(model).up, rotary(model).down), before):
        assert kept.dtype == torch.float32
        assert torch.equal(kept, old)
    assert full_logits(model, ids).dtype == torch.bfloat16


def test_a_cache_is_continued_at_one_scale_alone():
    model = clex_model()
    ids = tokens(2 * L)

    @torch.inference_mode()
    def continued(at):
        cache = model(ids[:, :at], use_cache=True).past_key_values
        return model(ids[:, at:], past_key_values=cache).logits

    with rotation.at_length(model, 2 * L):
        full = full_logits(model, ids)
        assert torch.allclose(continued(L - 3), full[:, L - 3 :], atol=2e-3)
    with pytest.raises(InputError, match="at_length"):
        continued(L)
    assert torch.allclose(continued(L + 1), full[:, L + 1 :], atol=2e-3)


def test_an_export_loads_stock_and_is_restored(tmp_path):
    model = clex_model(factor=4)
    directory = export(model, tmp_path / "exported")
    stock = AutoModelForCausalLM.from_pretrained(directory)
    assert not clex.is_installed(stock)
    assert stock.config.max_position_embeddings == 4 * L
    restored = clex.restore(AutoModelForCausalLM.from_pretrained(directory), directory)
    assert clex.is_installed(restored)
    assert clex.is_installed(model)
    for length in (10, 4 * L, 7 * L):
        ids = tokens(length)
        assert torch.equal(full_logits(restored, ids), full_logits(model, ids))
    with rotation.at_length(model, 4 * L):  # the fixed scale of the stock checkpoint
        assert torch.allclose(full_logits(stock, ids), full_logits(model, ids), atol=2e-3)
    short = tokens(10)
    assert not torch.allclose(full_logits(stock, short), full_logits(model, short), atol=0.1)


def test_saved_weights_are_equal_files_and_extend_a_fresh_model(tmp_path):
    model = clex_model(factor=4)
    assert len({clex.save(model, tmp_path / str(i)).read_bytes() for i in range(8)}) == 1
    again = extend(random_model(**SHORT), "clex", 4, weights=tmp_path / "0")
    assert torch.equal(full_logits(again, tokens(50)), full_logits(model, tokens(50)))
    extend(again, "pi", 2)  # from what was there before CLEX
    fresh = extend(random_model(**SHORT), "pi", 2)
    assert torch.equal(full_logits(again, tokens(50)), full_logits(fresh, tokens(50)))


def test_weights_that_were_trained_for_other_scales_are_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as longer:
        longer.setattr(clex, "MAX_FACTOR", 2 * clex.MAX_FACTOR)
        clex.save(clex_model(), tmp_path)
    with pytest.raises(InputError, match=f"up to {2 * clex.MAX_FACTOR}"):
        extend(random_model(**SHORT), "clex", 2, weights=tmp_path)


def test_bad_weights_and_models_are_refused_and_leave_the_model_alone(tmp_path):
    model = random_model(**SHORT)
    before = full_logits(model, tokens(40))
    clex.save(clex_model(head_dim=32), tmp_path)
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"nothing of the kind")
    for options, says in (
        ({}, "--method clex"),
        ({"weights": tmp_path / "absent"}, "no CLEX weights at .*absent"),
        ({"weights": broken}, "does not hold CLEX weights"),
        ({"weights": tmp_path}, "trained for d = 32, .* this model has d = 16"),
    ):
        with pytest.raises(InputError, match=says):
            extend(model, "clex", 2, **options)
    assert torch.equal(full_logits(model, tokens(40)), before)
    other = random_model("CohereConfig")
    with pytest.raises(InputError, match="no Llama-style rotary embedding"):
        clex.install(other, rope_geometry(other), 2)
