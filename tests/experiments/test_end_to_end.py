"""From weights to a table: fine-tune a few steps, evaluate, record, render; every number is then computed plainly."""

import re

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from experiments import texts
from experiments.records import ROOT
from tables import perplexity

LENGTHS, STRIDE, TOKENS = (1024, 2048), 256, 2304


def plain(directory, length):
    """Perplexity of a stock checkpoint on the first book, from whole logits; each token once, at the window's end."""
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    ids = torch.tensor(tokenizer(texts.books(1)[0].text[: 8 * TOKENS], add_special_tokens=False).input_ids[:TOKENS])
    losses, scored = [], 1
    for end in range(length, TOKENS + 1, STRIDE):
        window = ids[end - length : end]
        with torch.no_grad():
            own = torch.nn.functional.cross_entropy(model(window[None]).logits[0, :-1], window[1:], reduction="none")
        losses += own[-(end - scored) :].tolist()
        scored = end
    return float(np.exp(np.mean(losses)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("end-to-end")


def test_a_fine_tune_reaches_the_table(call, folder):
    results = folder / "results"

    def made(*command):
        status, _, err = call(*command, "--results", results)
        assert status == 0, err

    made(
        "finetune",
        "--scale",
        "tiny",
        "--method",
        "pi",
        "--steps",
        3,
        "--learning-rate",
        3e-5,
        "--output",
        folder / "pi",
    )
    window = ["--lengths", *LENGTHS, "--stride", STRIDE, "--tokens", TOKENS]
    made("perplexity", "--scale", "tiny", "--method", "original", *window)
    made("perplexity", "--scale", "tiny", "--method", "pi", *window)
    made("perplexity", "--model", folder / "pi", *window)

    _, _, block = perplexity.build(results, "tiny").partition("measured without training")
    untrained, _, trained = block.partition("measured fine-tuned")
    cells = {
        (state, row[0].split(" ")[0]): [
            float(re.search(r"[\d.]+", cell.removeprefix(r"\textbf{"))[0]) for cell in row[1:]
        ]
        for state, part in (("untrained", untrained), ("trained", trained))
        for row in ([cell.strip() for cell in line.split("&")] for line in part.splitlines())
        if row[0].startswith(("Original", "PI"))
    }
    assert cells["untrained", "Original"] == [pytest.approx(plain(ROOT / "models/tiny", n), rel=2e-3) for n in LENGTHS]
    assert cells["trained", "PI"] == [pytest.approx(plain(folder / "pi", n), rel=2e-3) for n in LENGTHS]
    within, beyond = cells["untrained", "Original"]
    assert beyond > 1.05 * within  # the base model loses more beyond L, in windows that are half within it
    assert min(cells["untrained", "PI"]) > 1.5 * within  # interpolating every pair costs more than that
    for trained, untrained in zip(cells["trained", "PI"], cells["untrained", "PI"], strict=True):
        assert trained != untrained and trained == pytest.approx(
            untrained, rel=0.1
        )  # three small steps move it a little
