"""Pre-training: tokenizer, curriculum, first weights, choice of books."""

import random

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from experiments.kit import texts
from tests.models import byte_tokenizer
from tools.tiny import corpus, curriculum, network, pretrain
from tools.tiny.curriculum import Stage
from tools.tiny.miniature import Source, make
from tools.tiny.muon import orthogonal
from tools.tiny.recipe import TINY, Recipe

SENTENCES = "The ship left the harbour at noon. Nobody knew its name! Where had it come from? "
SOURCE = Source("train", byte_tokenizer(), [SENTENCES * 100])


def test_targets_are_the_answers_and_their_ends():
    sample = make("recall", random.Random(1), SOURCE, 600, 3)
    ids, target = curriculum.tokenize(sample, SOURCE.tokenizer, 600)
    text = SOURCE.tokenizer.decode([token for token, wanted in zip(ids, target) if wanted])
    assert text == "".join(f" {turn.answer}</s>" for turn in sample.turns)


SMALL = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 320,
}


def test_the_first_model_already_copies_what_followed_before():
    """Random tokens, then the same again: at each the next one is the likeliest but for the token
    itself."""
    config = LlamaConfig(**TINY.model)
    model = network.plain(network.build(config, TINY.looking_back, seed=0))
    text = torch.randperm(config.vocab_size, generator=torch.Generator().manual_seed(0))[:300]
    ids = torch.cat([text, text])[None]
    with torch.no_grad():
        logits = model(ids).logits[0]
    logits[torch.arange(600), ids[0]] = -torch.inf
    assert (logits[300:-1].argmax(-1) == text[1:]).float().mean() > 0.8
    assert (logits[:299].argmax(-1) == text[1:]).float().mean() < 0.05


def test_the_loss_is_the_weighted_sum_over_targets():
    config = LlamaConfig(**TINY.model | SMALL | {"tie_word_embeddings": True})
    model = network.build(config, looking_back=1, seed=0)
    ids = torch.randint(0, 300, (3, 20))
    weights = torch.rand(3, 20).where(torch.rand(3, 20) < 0.4, 0.0)
    logits = network.plain(model)(ids).logits.log_softmax(-1)
    of_targets = -logits[:, :-1].gather(2, ids[:, 1:, None])[..., 0]
    expected = (weights[:, 1:] * of_targets).sum()
    loss = model(ids, weights, torch.arange(20).expand(3, -1))["loss"]
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("shape", [(20, 50), (50, 20)])
def test_muon_moves_along_the_orthogonal_factor(shape):
    """Against the singular value decomposition: the same singular vectors, all values between 0.6
    and 1.25."""
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0)) + 0.3
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    found = u.T @ orthogonal(matrix) @ v.T
    values = found.diag()
    assert (found - values.diag()).abs().max() < 1e-4
    assert values.min() > 0.6
    assert values.max() < 1.25


def test_books_that_are_evaluated_on_are_left_out(tmp_path, monkeypatch):
    words = [f"{a}{b}" for a in "bcdfgh" for b in ("able", "ond", "ist", "ark", "une")]
    mine = " ".join(random.Random(0).choices(words, k=3000))
    scored = " ".join(random.Random(1).choices(words, k=3000))
    monkeypatch.setattr(texts, "books", lambda count: [texts.Book("scored", scored)])
    (tmp_path / "mine.txt").write_text(mine)
    (tmp_path / "edition.txt").write_text("Another edition.\n\n" + scored.upper())
    assert corpus.load(tmp_path) == [mine]


# ---- the command

SMOKE = Recipe(
    TINY.model | SMALL,
    stages=(
        Stage(256, 4 * 256, 2 * 256, 1, TINY.stages[1].mixture),
        Stage(320, 4 * 320, 2 * 320, 1, TINY.stages[1].mixture),
    ),
    training=TINY.training | {"warmup_steps": 2, "save_steps": 2, "logging_steps": 1},
    looking_back=1,
    decay=0.35,
)


def test_a_run_gives_a_stock_model(tmp_path, monkeypatch, done):
    monkeypatch.setattr(pretrain, "TINY", SMOKE)
    monkeypatch.setattr(corpus, "without_evaluation", lambda books: books)
    (tmp_path / "book.txt").write_text(SENTENCES * 300)
    done("tools.tiny.pretrain", "--corpus", tmp_path, "--output", tmp_path / "model")
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "model").dtype == torch.bfloat16
