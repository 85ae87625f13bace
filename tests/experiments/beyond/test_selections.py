"""The sweep over selections of pairs: which there are and what they lose."""

import contextlib
import io
import json
import sys

import numpy as np
import pytest

from core.disturbance import disturbance
from core.extend import extend
from core.rope import RopeGeometry, scale
from experiments import base_models
from experiments.base_models.model import Model
from experiments.beyond import selections
from tests.core.test_angles import brute_force
from tests.models import byte_tokenizer, checkpoint, random_model, token_losses

GEOMETRY = RopeGeometry(16, 500.0, 128)
SHAPE = {"max_position_embeddings": 128, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    file = tmp_path_factory.mktemp("selections") / "book.txt"
    file.write_text("".join(np.random.default_rng(0).choice(list("abcdefgh "), 2000)))
    return file


@pytest.fixture(scope="module")
def record(book):
    path, results = checkpoint(book.parent / "model", **SHAPE), book.parent / "results"
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setitem(base_models.MODELS, "toy", Model("Toy", str(path), GEOMETRY))
        command = ["selections", "--model", "toy", "--texts", book, "--results", results]
        patch.setattr(sys, "argv", list(map(str, command)))
        selections.main()
        selections.main()
    assert "done already" in said.getvalue()
    return json.loads((results / "toy/beyond/selections/s=2.json").read_text())


def histogram(inv_freq, length):
    return np.array([brute_force(theta, length, 360) for theta in inv_freq]) / length


def test_each_set_of_pairs_stands_once(record):
    masks = [tuple(row["interpolated_pairs"]) for row in record["scores"]]
    assert len(set(masks)) == len(masks)
    settings = [{"n_hat": n, "convention": c} for n in range(0, 17, 2) for c in ("released", "equation")]
    settings += [{"intervals": b, "convention": c} for b in selections.INTERVALS for c in ("released", "equation")]
    wanted = {tuple(np.flatnonzero(scale(GEOMETRY, "dprope", 2, **options).interpolated)) for options in settings}
    assert set(masks) == wanted


def test_rows_are_what_a_plain_loop_measures(record, book):
    for method, count in (("original", 0), ("pi", 8)):
        losses = token_losses(extend(random_model(**SHAPE), method, 2), byte_tokenizer().encode(book.read_text())[:257])
        (row,) = [row for row in record["scores"] if len(row["interpolated_pairs"]) == count]
        assert row["within"]["mean"] == pytest.approx(losses[:128].mean(), abs=1e-4)
        assert row["beyond"]["mean"] == pytest.approx(losses[128:].mean(), abs=1e-4)
        speed = GEOMETRY.inv_freq / (2 if count else 1)
        now, before = histogram(speed, 256), histogram(GEOMETRY.inv_freq, 128)
        for convention, value in row["disturbance"].items():
            assert value == pytest.approx(disturbance(now, before, convention).mean(), rel=1e-9)
