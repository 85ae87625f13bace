"""From weights to a table: fine-tune a few steps, evaluate, record, render; every number is then
computed plainly."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from analysis.results import Results
from experiments.kit import texts
from tables.benchmarks import perplexity
from tests.models import token_losses

# L', so that half of a window is beyond L
LENGTH = 2048
STRIDE = 256
TOKENS = 2304


def test_a_fine_tune_reaches_the_table(done, tmp_path):
    results = tmp_path / "results"
    tuned = tmp_path / "pi"
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (book,) = texts.books(2)[1:]
    (corpus / "book.txt").write_text(book.text[:60_000])
    training = "finetune --model tiny --method pi --steps 1 --length 256 --batch 1"
    done(training, "--corpus", corpus, "--output", tuned, "--results", results)
    window = f"perplexity --texts packaged:1 --lengths {LENGTH} --stride {STRIDE} --tokens {TOKENS}"
    done(window, "--model", tuned, "--results", results)

    blocks = perplexity(Results.of("tiny", results)).blocks
    (block,) = [block for block in blocks if "measured" in block.title]
    ((name, cell, *_),) = block.rows
    assert "fine-tuned" in block.title
    assert name.text.startswith("PI")

    # Whole logits of a stock checkpoint; each token once, at its window's end.
    model = AutoModelForCausalLM.from_pretrained(tuned, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tuned)
    text = texts.books(1)[0].text[: 8 * TOKENS]
    ids = tokenizer(text, add_special_tokens=False).input_ids[:TOKENS]
    losses = []
    scored = 1
    for end in range(LENGTH, TOKENS + 1, STRIDE):
        losses += token_losses(model, ids[end - LENGTH : end])[-(end - scored) :].tolist()
        scored = end
    assert float(cell.text) == pytest.approx(np.exp(np.mean(losses)), rel=2e-3)
