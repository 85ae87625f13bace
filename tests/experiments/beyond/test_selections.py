"""The sweep over selections of pairs: which there are and what they lose."""

import json

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
SHAPE = {
    "max_position_embeddings": 128,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
}


def histogram(inv_freq, length):
    return np.array([brute_force(theta, length, 360) for theta in inv_freq]) / length


def test_each_set_of_pairs_stands_once_with_what_a_plain_loop_measures(call, tmp_path, monkeypatch):
    text = "".join(np.random.default_rng(0).choice(list("abcdefgh "), 2000))
    (tmp_path / "book.txt").write_text(text)
    path = checkpoint(tmp_path / "model", **SHAPE)
    monkeypatch.setitem(base_models.MODELS, "toy", Model("Toy", str(path), GEOMETRY))
    line = [
        "selections",
        "--model",
        "toy",
        "--texts",
        tmp_path / "book.txt",
        "--results",
        tmp_path / "results",
    ]
    assert call(*line)[0] == 0 and "done already" in call(*line)[1]
    record = json.loads((tmp_path / "results/toy/beyond/selections/s=2.json").read_text())
    masks = [tuple(row["interpolated_pairs"]) for row in record["scores"]]
    assert len(set(masks)) == len(masks)
    settings = [
        {"n_hat": n, "convention": c} for n in range(0, 17, 2) for c in ("released", "equation")
    ]
    settings += [
        {"intervals": b, "convention": c}
        for b in selections.INTERVALS
        for c in ("released", "equation")
    ]
    wanted = {
        tuple(np.flatnonzero(scale(GEOMETRY, "dprope", 2, **options).interpolated))
        for options in settings
    }
    assert set(masks) == wanted
    for method, count in (("original", 0), ("pi", 8)):
        losses = token_losses(
            extend(random_model(**SHAPE), method, 2), byte_tokenizer().encode(text)[:257]
        )
        (row,) = [row for row in record["scores"] if len(row["interpolated_pairs"]) == count]
        assert row["within"]["mean"] == pytest.approx(losses[:128].mean(), abs=1e-4)
        assert row["beyond"]["mean"] == pytest.approx(losses[128:].mean(), abs=1e-4)
        speed = GEOMETRY.inv_freq / (2 if count else 1)
        now, before = histogram(speed, 256), histogram(GEOMETRY.inv_freq, 128)
        for convention, value in row["disturbance"].items():
            assert value == pytest.approx(disturbance(now, before, convention).mean(), rel=1e-9)
