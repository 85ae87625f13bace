"""CLEX's embedding: its draws in training, its scale by the length, and a cache that turns with
it."""

import numpy as np
import pytest
import torch

from core import clex
from core.clex import ode
from core.errors import InputError
from core.huggingface import dynamic
from tests.core.clex.made import L, clex_model, full_logits, rotary, tokens


@pytest.mark.parametrize("length", [2, L, 2 * L, 3 * L + 5])
def test_draws_are_those_of_the_authors_class(length):
    """As CLEX/clex_layer.py computes them: `sample_random_times`, `get_random_position_ids` and
    what forward adds."""
    embedding, generator, theirs = (
        rotary(clex_model()),
        *(torch.Generator().manual_seed(0) for _ in range(2)),
    )
    seen = set()
    times = max(length // L, 1)
    for _ in range(100):
        t, positions = embedding.draw(length, generator)
        seen.add(t)
        assert t == int(torch.randint(1, 17, (1,), generator=theirs)[0])
        inside = (
            torch.randperm(length * t - 2, generator=theirs)[: length - 2].sort().values.float()
        )
        assert positions.tolist() == [
            0.0,
            *((inside + 1) / times).tolist(),
            length * t // times - 1,
        ]
    assert seen == set(range(1, 17)) and len(embedding.draw(1)[1]) == 1


def test_training_rotates_by_what_it_draws_and_a_seed_repeats_it():
    model = clex_model().train()
    embedding = rotary(model)
    ids = torch.arange(40)[None]
    torch.manual_seed(5)
    t, positions = embedding.draw(40)
    angles = np.outer(
        positions, ode.solve(embedding.up, embedding.down, embedding.geometry, t).detach()
    )
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 1e-2)):
        torch.manual_seed(5)
        cos, sin = embedding(torch.zeros(1, dtype=dtype), ids)
        assert cos.dtype == sin.dtype == dtype and cos.shape == (1, 40, 16)
        assert cos[0, :, :8].detach().float().numpy() == pytest.approx(
            np.cos(angles), abs=tolerance
        )
        assert sin[0, :, 8:].detach().float().numpy() == pytest.approx(
            np.sin(angles), abs=tolerance
        )
    logits = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        logits.append(model(tokens(40)).logits)
    assert torch.equal(logits[0], logits[1]) and not torch.equal(logits[0], logits[2])


def test_a_samples_draw_is_its_own_whatever_shares_its_batch_and_wherever_a_run_begins():
    embedding = rotary(clex_model())

    def drawn(draws, samples):
        return [
            (t, positions.tolist())
            for t, positions in draws.of(samples, lambda each: embedding.draw(20, each))
        ]

    every = drawn(clex.Draws(3), range(12))
    assert len({t for t, _ in every}) > 4 and drawn(clex.Draws(4), range(12)) != every
    for stride, width in ((1, 1), (3, 1), (8, 4)):  # other processes take what is between
        draws = clex.Draws(3)
        for start in range(0, 12 - width, stride):
            for _ in range(2):  # as a pass that is recomputed asks again
                assert drawn(draws, range(start, start + width)) == every[start : start + width]
    draws = clex.Draws(3)
    for sample in (11, 2, 7):  # backwards too, from the beginning
        assert drawn(draws, [sample]) == every[sample : sample + 1]


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
    matrices = [matrix.clone() for matrix in (rotary(model).up, rotary(model).down)]
    model.to(torch.bfloat16).half().bfloat16()
    for kept, old in zip((rotary(model).up, rotary(model).down), matrices):
        assert kept.dtype == torch.float32 and torch.equal(kept, old)
    assert full_logits(model, ids).dtype == torch.bfloat16


def test_a_cache_is_continued_at_one_scale_alone():
    model = clex_model()
    ids = tokens(2 * L)
    with torch.inference_mode():
        with dynamic.at_length(model, 2 * L):
            full = full_logits(model, ids)
            cache = model(ids[:, : L - 3], use_cache=True).past_key_values
            rest = model(ids[:, L - 3 :], past_key_values=cache).logits
        assert torch.allclose(rest, full[:, L - 3 :], atol=2e-3)
        cache = model(ids[:, :L], use_cache=True).past_key_values
        with pytest.raises(InputError, match="at_length"):
            model(ids[:, L:], past_key_values=cache)
        cache = model(ids[:, : L + 1], use_cache=True).past_key_values
        assert torch.allclose(
            model(ids[:, L + 1 :], past_key_values=cache).logits, full[:, L + 1 :], atol=2e-3
        )
