"""The parts of pre-training: tokenizer, curriculum, first weights, choice of books."""

import copy
import itertools
import random

import numpy as np
import pytest
import torch
from transformers import LlamaConfig

from core.errors import InputError
from core.huggingface.embedding import config_geometry
from core.rope import RopeGeometry
from experiments.kit import texts
from tests.models import byte_tokenizer
from tools.tiny import corpus, curriculum, network, pretrain
from tools.tiny.curriculum import TEXT, Batches, Stage
from tools.tiny.miniature import Setting, make
from tools.tiny.muon import Muon, orthogonal
from tools.tiny.recipe import TINY

BOOK = "It was a bright cold day in spring, and the clocks were striking 13. " * 300
TOKENIZER = corpus.train_tokenizer([BOOK], 300, 128, seed=0)
SETTING = Setting("train", byte_tokenizer(), [BOOK])
MIXTURE = {"recall": 0.5, "passkey": 0.2, TEXT: 0.3}


def test_targets_are_the_answers_and_their_ends():
    sample = make("recall", random.Random(1), SETTING, 600, 3)
    ids, target = curriculum.tokenize(sample, SETTING.tokenizer, 600)
    text = SETTING.tokenizer.decode([token for token, wanted in zip(ids, target) if wanted])
    assert text == "".join(f" {turn.answer}</s>" for turn in sample.turns)
    assert SETTING.tokenizer.decode(ids).startswith(
        f"{sample.context}{sample.turns[0].question} {sample.turns[0].answer}</s>"
    )


def test_a_batch_depends_on_seed_and_step_alone():
    stages = (Stage(300, 1200, 600, 1, MIXTURE), Stage(400, 1600, 800, 2, MIXTURE))
    every = Batches(stages, SETTING, seed=3)
    parts = list(every)
    assert parts == list(itertools.product(range(4), range(curriculum.PARTS)))
    later = Batches(stages, SETTING, seed=3, start=2)
    assert list(later) == parts[4:]
    for part in parts[4:]:
        assert torch.equal(every.collate([part])["input_ids"], later.collate([part])["input_ids"])
    assert every.collate([parts[0]])["input_ids"].shape[1] == 300
    assert every.collate([parts[-1]])["input_ids"].shape[1] == 400
    other = Batches(stages, SETTING, seed=4)
    assert not torch.equal(every.collate([parts[0]])["input_ids"], other.collate([parts[0]])["input_ids"])
    assert not torch.equal(every.collate([parts[0]])["input_ids"], every.collate([parts[1]])["input_ids"])


def test_positions_jump_between_sentences_and_never_beyond_their_reach():
    rng = random.Random(0)
    ends = torch.zeros(50, dtype=torch.bool)
    ends[[7, 20, 21, 49]] = True
    spans = []
    for _ in range(200):
        places = curriculum.positions(ends, 400, rng)
        jumps = (places.diff() > 1).nonzero()[:, 0].tolist()
        assert places[0] == 0 and (places.diff() >= 1).all() and set(jumps) <= {7, 20, 21}
        spans.append(places[-1].item())
    assert max(spans) < 400 and max(spans) > 300 and min(spans) < 150
    assert torch.equal(curriculum.positions(ends, 0, rng), torch.arange(50))
    assert torch.equal(curriculum.positions(ends & False, 400, rng), torch.arange(50))


def small_config(**changes):
    sizes = {
        "vocab_size": 300,
        "tie_word_embeddings": True,
        "hidden_size": 192,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
    }
    rope = {"rope_type": "default", "rope_theta": 1300.0}
    return LlamaConfig(head_dim=64, initializer_range=0.05, rope_parameters=rope, **sizes | changes)


def test_the_first_model_already_copies_what_followed_before():
    """Random tokens, then the same again: at each the next one is the likeliest but for the token itself."""
    recipe = TINY
    config = pretrain.architecture(recipe, TOKENIZER)
    config.vocab_size = recipe.model["vocab_size"]
    model = network.plain(network.build(config, recipe.looking_back, seed=0))
    text = torch.randperm(config.vocab_size, generator=torch.Generator().manual_seed(0))[:300]
    ids = torch.cat([text, text])[None]
    with torch.no_grad():
        logits = model(ids).logits[0]
    logits[torch.arange(600), ids[0]] = -torch.inf
    assert (logits[300:-1].argmax(-1) == text[1:]).float().mean() > 0.8
    assert (logits[:299].argmax(-1) == text[1:]).float().mean() < 0.05


def test_the_loss_is_the_weighted_sum_over_targets():
    model = network.build(small_config(), looking_back=1, seed=0)
    ids, weights = torch.randint(0, 300, (3, 20)), torch.rand(3, 20) * (torch.rand(3, 20) < 0.4)
    logits = network.plain(model)(ids).logits.log_softmax(-1)
    expected = sum(-weights[row, i] * logits[row, i - 1, ids[row, i]] for row in range(3) for i in range(1, 20))
    assert model(ids, weights, torch.arange(20).expand(3, -1))["loss"].item() == pytest.approx(
        expected.item(), rel=1e-5
    )


@pytest.mark.parametrize("shape", [(30, 30), (20, 50), (50, 20)])
def test_muon_moves_along_the_orthogonal_factor(shape):
    """Against the singular value decomposition: the same singular vectors, all values between 0.7 and 1.2."""
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0)) + 0.3
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    found = u.T @ orthogonal(matrix) @ v.T
    assert (found - found.diag().diag()).abs().max() < 1e-4
    assert found.diag().min() > 0.6 and found.diag().max() < 1.25


def test_muon_takes_the_layers_matrices_and_adamw_the_rest_each_at_its_rate():
    model = network.plain(network.build(small_config(tie_word_embeddings=False), looking_back=1, seed=0))
    twin, ids = copy.deepcopy(model), torch.randint(0, 300, (2, 20), generator=torch.Generator().manual_seed(0))
    head, matrices = "lm_head.weight", {name for name, p in model.named_parameters() if p.ndim == 2}
    matrices -= {head, "model.embed_tokens.weight"}
    rates = {name: 1e-2 * (3 if name == head else 2) for name, _ in model.named_parameters()}
    groups = [{"params": [parameter], "lr": rates[name]} for name, parameter in twin.named_parameters()]
    ours = Muon(model, 1e-2, (0.9, 0.95), 0.1)
    plain = torch.optim.AdamW(groups, betas=(0.9, 0.95), weight_decay=0.1)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for one, optimizer in ((model, ours), (twin, plain)):
        one(ids, labels=ids).loss.backward()
        optimizer.step()
    for (name, parameter), other in zip(model.named_parameters(), twin.parameters()):
        if name not in matrices:
            assert torch.equal(parameter, other), name
        elif parameter.grad.any():  # behind outputs that are zero there is no gradient yet
            moved = (parameter - before[name] * (1 - 1e-2 * 0.1)) / -1e-2
            assert 0 < moved.square().mean().sqrt().item() < 0.25  # 0.2 for a gradient of full rank
            assert (moved * parameter.grad).sum() > 0  # downhill
    again = Muon(model, 1e-2, (0.9, 0.95), 0.1)
    again.load_state_dict(ours.state_dict())


def test_the_share_of_long_wavelengths_is_llama2s():
    recipe = TINY
    geometry = config_geometry(pretrain.architecture(recipe, TOKENIZER))
    llama2 = RopeGeometry(128, 10000.0, 4096)
    ours, theirs = (np.mean(g.wavelength > g.context_length) for g in (geometry, llama2))
    assert ours == pytest.approx(theirs, abs=0.5 / geometry.pairs)
    assert all(stage.length <= geometry.context_length for stage in recipe.stages)


def write(directory, **books):
    for name, text in books.items():
        (directory / f"{name}.txt").write_text(text)


def test_books_that_are_evaluated_on_are_left_out(tmp_path, monkeypatch):
    words = [f"{a}{b}" for a in "bcdfgh" for b in ("able", "ond", "ist", "ark", "une")]
    scored, mine, other = (" ".join(random.Random(seed).choices(words, k=3000)) for seed in range(3))
    monkeypatch.setattr(texts, "books", lambda count: [texts.Book("scored", scored)])
    write(tmp_path, mine=mine, edition="Another edition.\n\n" + scored.upper(), other=other)
    assert sorted(corpus.load(tmp_path).train) == sorted([mine, other])
    unseen = tmp_path / "unseen.txt"
    unseen.write_text(other[3000:])
    assert corpus.load(tmp_path, evaluation=[unseen]).train == [mine]


def test_a_corpus_without_text_is_refused(tmp_path):
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match="no .txt or .parquet file in"):
            corpus.load(folder)
    write(tmp_path, short="Too short.")
    with pytest.raises(InputError, match="no text to train on"):
        corpus.load(tmp_path)


def test_without_data_the_end_of_each_registry_book_is_held_out_and_the_scored_one_left_out():
    found, books = corpus.load(None), texts.books(texts.AVAILABLE)[texts.SCORED :]
    assert len(found.train) == len(found.held_out) == len(books)
    for train, held_out, book in zip(found.train, found.held_out, books):
        assert train + held_out == book.text
