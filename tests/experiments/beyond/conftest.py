"""A base model and two books for the experiments beyond the paper, and servers that are soon given
up."""

import numpy as np
import pytest

from core.rope import RopeGeometry
from eval.beyond import endpoint
from experiments import base_models
from experiments.base_models.model import BaseModel
from tests.models import checkpoint


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(endpoint, "PAUSE", 0.01)
    monkeypatch.setattr(endpoint, "TRIES", 3)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A base model, random, with L = 512, and the options that read two books of random letters,
    one.txt and two.txt."""
    path = checkpoint(tmp_path / "model", max_position_embeddings=512)
    known = BaseModel("Toy", str(path), RopeGeometry(16, 10000.0, 512))
    monkeypatch.setitem(base_models.MODELS, "toy", known)
    letters = np.random.default_rng(0).choice(list("abcdefgh "), (2, 2000))
    books = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for book, of_book in zip(books, letters):
        book.write_text("".join(of_book))
    return ["--texts", *books, "--results", tmp_path / "results"]
