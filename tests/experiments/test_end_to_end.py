"""From weights to a table: fine-tune a few steps, evaluate, record, render; every number is then
computed plainly."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from analysis.results import Results
from experiments.kit import texts
from tables import perplexity
from tests.models import token_losses

# L', so that half of a window is beyond L
LENGTH = 2048
STRIDE = 256
TOKENS = 2304


def plain(directory, length):
    """Perplexity of a stock checkpoint on the first book, from whole logits; each token once, at
    the window's end."""
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    ids = tokenizer(texts.books(1)[0].text[: 8 * TOKENS], add_special_tokens=False).input_ids[
        :TOKENS
    ]
    losses = []
    scored = 1
    for end in range(length, TOKENS + 1, STRIDE):
        losses += token_losses(model, ids[end - length : end])[-(end - scored) :].tolist()
        scored = end
    return float(np.exp(np.mean(losses)))


def test_a_fine_tune_reaches_the_table(call, tmp_path):
    results = tmp_path / "results"
    corpus = tmp_path / "corpus"

    def run(*command):
        status, _, err = call(*command, "--results", results)
        assert status == 0, err

    corpus.mkdir()
    for book in texts.books(3)[1:]:
        (corpus / f"{book.title}.txt").write_text(
            book.text[:60_000]
        )  # enough for a few steps, read in no time
    size = [
        "--steps",
        2,
        "--length",
        512,
        "--batch",
        2,
        "--learning-rate",
        3e-5,
        "--corpus",
        corpus,
    ]
    run("finetune", "--model", "tiny", "--method", "pi", *size, "--output", tmp_path / "pi")
    window = ["--packaged", 1, "--lengths", LENGTH, "--stride", STRIDE, "--tokens", TOKENS]
    run("perplexity", "--model", "tiny", "--method", "pi", *window)
    run("perplexity", "--model", tmp_path / "pi", *window)

    cells = {
        (
            "trained" if "fine-tuned" in block.title else "untrained",
            row[0].text.split(" ")[0],
        ): float(row[1].text)
        for block in perplexity.build(Results.of("tiny", results)).blocks
        if "measured" in block.title
        for row in block.rows
    }
    assert cells["trained", "PI"] == pytest.approx(plain(tmp_path / "pi", LENGTH), rel=2e-3)
    trained = cells["trained", "PI"]
    untrained = cells["untrained", "PI"]
    assert trained != untrained and trained == pytest.approx(
        untrained, rel=0.2
    )  # two small steps move it a little
