"""CLEX's embedding: its draws in training, its scale by the length, and a cache that turns with it."""

import copy

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from core import clex
from core.clex import ode
from core.errors import InputError
from tests.core.clex.made import L, clex_model, full_logits, rotary, tokens
from tests.models import random_model


@pytest.mark.parametrize("length", [1, 2, L, 2 * L])
def test_drawn_positions_increase_from_zero_to_the_end_of_the_stretched_sequence(length):
    place = rotary(clex_model())
    torch.manual_seed(0)
    seen = set()
    for _ in range(300):
        t, positions = place.draw(length)
        whole = positions * max(1, length // L)
        seen.add(t)
        assert len(positions) == length and positions[0] == 0
        assert torch.equal(whole, whole.round()) and (whole.diff() > 0).all()
        assert length == 1 or whole[-1] == t * length - 1
    assert seen == set(range(1, 17))


def test_training_rotates_by_what_it_draws_and_a_seed_repeats_it():
    model = clex_model().train()
    place, ids = rotary(model), torch.arange(40)[None]
    torch.manual_seed(5)
    t, positions = place.draw(40)
    for x in (torch.zeros(1), torch.zeros(1, dtype=torch.bfloat16)):
        torch.manual_seed(5)
        cos, sin = place(x, ids)
        angles = np.outer(positions, ode.solve(place.up, place.down, place.geometry, t).detach())
        assert cos.dtype == sin.dtype == x.dtype and cos.shape == (1, 40, 16)
        tolerance = 1e-4 if x.dtype == torch.float32 else 1e-2
        assert cos[0, :, :8].detach().float().numpy() == pytest.approx(np.cos(angles), abs=tolerance)
        assert sin[0, :, 8:].detach().float().numpy() == pytest.approx(np.sin(angles), abs=tolerance)
    torch.manual_seed(5)
    first = model(tokens(40)).logits
    torch.manual_seed(5)
    assert torch.equal(model(tokens(40)).logits, first) and not torch.equal(model(tokens(40)).logits, first)


def drawn_alone(draws, place, sample, length):
    (found,) = draws.of([sample], lambda generator: place.draw(length, generator))
    return found


def test_a_samples_draw_is_its_own_whatever_shares_its_batch_and_wherever_a_run_begins():
    place = rotary(clex_model())
    every = clex.Draws(3).of(range(12), lambda generator: place.draw(20, generator))
    assert len({t for t, _ in every}) > 4
    for stride, width in ((1, 1), (2, 2), (3, 1), (8, 4)):  # other processes take what is between
        draws = clex.Draws(3)
        for start in range(0, 12 - width, stride):
            samples = range(start, start + width)
            for _ in range(2):  # as a pass that is recomputed asks again
                found = draws.of(samples, lambda generator: place.draw(20, generator))
                for sample, (t, positions) in zip(samples, found, strict=True):
                    assert t == every[sample][0] and torch.equal(positions, every[sample][1])
    draws = clex.Draws(3)
    for sample in (11, 2, 7):  # backwards too, from the beginning
        t, positions = drawn_alone(draws, place, sample, 20)
        assert t == every[sample][0] and torch.equal(positions, every[sample][1])
    assert [t for t, _ in clex.Draws(4).of(range(12), lambda generator: place.draw(20, generator))] != [
        t for t, _ in every
    ]


def test_rows_of_a_batch_train_as_each_does_alone():
    model, ids, samples = clex_model().train(), tokens(40, rows=3), [4, 0, 9]
    draws = clex.Draws(1)
    with clex.drawing(model, draws, samples):
        together = model(ids).logits
    for row, sample in enumerate(samples):
        with clex.drawing(model, draws, [sample]):
            alone = model(ids[row : row + 1]).logits
        assert torch.allclose(alone[0], together[row], atol=1e-4)
        place, (t, positions) = rotary(model), drawn_alone(draws, rotary(model), sample, 40)
        with clex.drawing(model, draws, samples):
            cos, _ = place(torch.zeros(1), torch.arange(40)[None])
        angles = np.outer(positions, ode.solve(place.up, place.down, place.geometry, t).detach())
        assert cos.shape == (3, 40, 16) and cos[row, :, :8].detach().numpy() == pytest.approx(np.cos(angles), abs=1e-4)
    assert rotary(model).drawn is None  # nothing stays behind
    with clex.drawing(random_model(), draws, samples):
        pass  # of other models nothing


def test_the_losss_gradient_in_both_matrices_is_its_finite_difference():
    model, ids = clex_model().train(), tokens(32)

    def loss():
        torch.manual_seed(3)  # the same t and positions each time
        return model(ids, labels=ids).loss

    for name in ("up", "down"):
        matrix = getattr(rotary(model), name)
        model.zero_grad()
        loss().backward()
        norm = matrix.grad.norm()
        with torch.no_grad():
            step = matrix.grad / norm * (0.002 / norm)  # up the slope, to a change in loss that float32 resolves
            matrix += step
            above = loss()
            matrix -= 2 * step
            below = loss()
            matrix += step
        assert (above - below).item() == pytest.approx(0.004, rel=0.05)


@pytest.mark.parametrize(("length", "t"), [(1, 1), (L, 1), (L + 1, 2), (3 * L, 3), (50 * L, 16)])
def test_in_evaluation_the_scale_follows_the_length(length, t):
    place = rotary(clex_model())
    cos, _ = place(torch.zeros(1), torch.arange(length)[None])
    exact = ode.solve(place.up, place.down, place.geometry, t).detach().numpy()
    assert cos[0, -1, :8].detach().numpy() == pytest.approx(np.cos((length - 1) * exact), abs=1e-3)


def test_changed_weights_are_solved_anew():
    model = clex_model()
    before = full_logits(model, tokens(3 * L))
    rotary(model).down.data.mul_(0.5)
    assert not torch.equal(full_logits(model, tokens(3 * L)), before)
    rotary(model).down.data.mul_(2)
    assert torch.equal(full_logits(model, tokens(3 * L)), before)


def test_a_cast_model_keeps_the_matrices_float32():
    model = clex_model()
    before = [p.clone() for p in (rotary(model).up, rotary(model).down)]
    model.to(torch.bfloat16).half().bfloat16()
    assert model.lm_head.weight.dtype == torch.bfloat16
    for kept, old in zip((rotary(model).up, rotary(model).down), before):
        assert kept.dtype == torch.float32 and torch.equal(kept, old)
    assert full_logits(model, tokens(40)).dtype == torch.bfloat16


@pytest.mark.parametrize("architecture", ["LlamaConfig", "GPTNeoXConfig", "MistralConfig"])
@pytest.mark.parametrize("use", ["given", "made"])
def test_step_by_step_over_a_cache_is_the_full_pass_at_every_length(architecture, use):
    """One layer, whose keys and values depend on no earlier attention: then turning the keys is all there is to do."""
    model = clex_model(architecture, num_hidden_layers=1)
    ids, first = tokens(2 * L + 3), L - 3
    cache = DynamicCache(config=model.config) if use == "given" else None
    start = 0
    for end in [first, *range(first + 1, 2 * L + 4)]:
        with torch.inference_mode():
            out = model(ids[:, start:end], past_key_values=cache, use_cache=True)
        cache, start = out.past_key_values, end
        assert torch.allclose(out.logits[:, -1], full_logits(model, ids[:, :end])[:, -1], atol=2e-3), end


def test_the_keys_of_every_layer_are_turned_about_their_own_position():
    model, ids = clex_model(), tokens(L + 1)
    place = rotary(model)
    with torch.inference_mode():
        cache = model(ids[:, :L], use_cache=True).past_key_values
        before = [layer.keys.double() for layer in cache.layers]
        model(ids[:, L:], past_key_values=cache, use_cache=True)
    old, new = (ode.solve(place.up, place.down, place.geometry, t).detach() for t in (1, 2))
    turn = torch.polar(torch.ones(L, 8).double(), torch.outer(torch.arange(L).double(), new - old))
    assert len(before) == 2
    for layer, keys in zip(cache.layers, before):
        expected = torch.complex(keys[..., :8], keys[..., 8:]) * turn
        found = torch.complex(layer.keys[:, :, :L, :8].double(), layer.keys[:, :, :L, 8:].double())
        assert torch.allclose(found, expected, atol=1e-4)


def test_rows_padded_on_the_left_are_turned_about_their_own_positions():
    model, lengths = clex_model(num_hidden_layers=1), (L - 6, L - 1)
    rows = [tokens(n + 8, seed=n) for n in lengths]
    width, cache = max(lengths), DynamicCache(config=model.config)
    for step in range(8):
        positions = torch.stack([torch.arange(-(width - n), n + step).clamp(min=0) for n in lengths])
        batch = torch.cat(
            [torch.cat([torch.zeros(1, width - n).long(), r[:, : n + step]], 1) for r, n in zip(rows, lengths)]
        )
        new = slice(-1, None) if step else slice(None)
        mask = torch.stack([torch.arange(width + step) >= width - n for n in lengths]).long()
        with torch.inference_mode():
            arguments = {"attention_mask": mask, "position_ids": positions[:, new], "past_key_values": cache}
            found = model(batch[:, new], **arguments).logits[:, -1]
            for row, n, logits in zip(rows, lengths, found):
                with clex.at_length(model, width + step):  # a batch has one scale, its longest row's
                    assert torch.allclose(logits, full_logits(model, row[:, : n + step])[0, -1], atol=2e-3)


def test_a_cache_whose_longest_row_or_end_is_dropped_is_turned_back():
    model, cache = clex_model(num_hidden_layers=1), DynamicCache()
    short, width = tokens(L - 4, seed=1), L + 2
    batch = torch.cat([torch.cat([torch.zeros(1, 6).long(), short], 1), tokens(width, seed=2)])
    mask = torch.arange(width) >= torch.tensor([[6], [0]])
    with torch.inference_mode():
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        model(batch, attention_mask=mask.long(), position_ids=positions, past_key_values=cache)  # t = 2
        cache.batch_select_indices(torch.tensor([0]))
        arguments = {"attention_mask": torch.cat([mask[:1], torch.ones(1, 1).bool()], 1), "past_key_values": cache}
        found = model(torch.tensor([[7]]), position_ids=torch.tensor([[L - 4]]), **arguments).logits[:, -1]
        expected = full_logits(model, torch.cat([short, torch.tensor([[7]])], 1))[:, -1]
        assert torch.allclose(found, expected, atol=2e-3)

        cache, text = DynamicCache(), tokens(2 * L)
        model(text, past_key_values=cache)
        cache.crop(-L - 4)
        found = model(text[:, L - 4 : L], past_key_values=cache).logits[:, -1]
        assert torch.allclose(found, full_logits(model, text[:, :L])[:, -1], atol=2e-3)


def test_transformers_generate_crosses_the_boundary():
    model, ids = clex_model(num_hidden_layers=1), tokens(L - 4)
    found = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False, pad_token_id=0)
    expected = ids
    while expected.shape[1] < found.shape[1]:
        expected = torch.cat([expected, full_logits(model, expected)[:, -1:].argmax(-1)], 1)
    assert torch.equal(found, expected) and found.shape[1] > L + 4


def test_a_copied_model_turns_by_its_own_matrices():
    model, ids = clex_model(num_hidden_layers=1), tokens(L + 1)
    twin = copy.deepcopy(model)
    rotary(twin).down.data.mul_(-1)
    with torch.inference_mode():
        cache = twin(ids[:, :L], use_cache=True).past_key_values
        last = twin(ids[:, L:], past_key_values=cache, use_cache=True).logits[:, -1]
    assert torch.allclose(last, full_logits(twin, ids)[:, -1], atol=2e-3)
    assert not torch.allclose(last, full_logits(model, ids)[:, -1], atol=0.1)


def test_a_cache_that_cannot_be_turned_is_refused():
    model, ids = clex_model(), tokens(L + 1)
    with pytest.raises(InputError, match="DynamicCache"):
        model.generate(
            ids[:, :L],
            attention_mask=torch.ones(1, L),
            max_new_tokens=4,
            do_sample=False,
            pad_token_id=0,
            cache_implementation="static",
            disable_compile=True,
        )
