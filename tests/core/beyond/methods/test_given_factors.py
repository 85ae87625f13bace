"""Factors from a file are taken as they are, and a bad file is refused."""

import json

import numpy as np
import pytest

from core.errors import InputError
from core.extend import extend
from core.huggingface.embedding import rope_geometry
from core.rope import scale
from tests.core.geometries import LLAMA2
from tests.models import random_model


@pytest.mark.parametrize("form", ["list", "factors", "long_factor"])
def test_factors_from_a_file_are_taken_as_they_are(tmp_path, form):
    model = random_model()
    geometry = rope_geometry(model)
    by = np.linspace(1, 3, geometry.pairs)
    content = (
        by.tolist()
        if form == "list"
        else {form: by.tolist(), "attention_factor": 1.25, "whatever": None}
    )
    (file := tmp_path / "f.json").write_text(json.dumps(content))
    scaling = scale(geometry, "factors", 2, file=file)
    np.testing.assert_allclose(scaling.inv_freq, geometry.inv_freq / by)
    assert scaling.attention_factor == pytest.approx(
        1.25 if form != "list" else np.sqrt(1 + np.log(2) / np.log(128))
    )
    rotary = extend(model, "factors", 2, file=str(file)).model.rotary_emb
    np.testing.assert_allclose(rotary.inv_freq, scaling.inv_freq, rtol=1e-6)
    assert model.config.rope_extension["options"] == {"file": "f.json"}  # not where it lies


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no file"),
        ("[1, 2]", "no list of 64 factors"),
        (json.dumps([0.0] * 64), "from 0.001"),
        (json.dumps([1.0] * 63 + ["a"]), "finite numbers"),
        (json.dumps({"factors": [1.0] * 64, "attention_factor": -1}), "attention factor"),
    ],
)
def test_bad_files_of_factors_are_refused(tmp_path, content, says):
    file = tmp_path / "f.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=says):
        scale(LLAMA2, "factors", 2, file=file)
