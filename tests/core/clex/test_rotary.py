"""CLEX's embedding: its draws in training, its scale by the length, and a cache that turns with
it."""

import numpy as np
import pytest
import torch

from core import clex
from core.clex import ode
from core.errors import InputError
from core.huggingface import rotation
from tests.core.clex.made import L, clex_model, full_logits, rotary, tokens


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


def test_training_rotates_by_what_it_draws_and_a_seed_repeats_it():
    model = clex_model().train()
    embedding = rotary(model)
    torch.manual_seed(5)
    t, positions = embedding.draw(40)
    inv_freq = ode.solve(embedding.up, embedding.down, embedding.geometry, t).detach()
    angles = np.outer(positions, inv_freq)
    torch.manual_seed(5)
    cos, sin = embedding(torch.zeros(1, dtype=torch.bfloat16), torch.arange(40)[None])
    assert cos.dtype == sin.dtype == torch.bfloat16
    assert cos[0, :, :8].detach().float().numpy() == pytest.approx(np.cos(angles), abs=1e-2)
    assert sin[0, :, 8:].detach().float().numpy() == pytest.approx(np.sin(angles), abs=1e-2)
    logits = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        logits.append(model(tokens(40)).logits)
    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[0], logits[2])


def test_a_samples_draw_is_its_own_whatever_shares_its_batch_and_wherever_a_run_begins():
    embedding = rotary(clex_model())

    def drawn(draws, samples):
        made = draws.of(samples, lambda generator: embedding.draw(20, generator))
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
