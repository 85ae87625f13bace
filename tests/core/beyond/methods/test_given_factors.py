"""Factors from a file are taken as they are, and a bad file is refused."""

import json
import math

import numpy as np
import pytest

from core.errors import InputError
from core.extend import extend
from core.huggingface.embedding import rope_geometry
from core.rope import scale
from tests.core.geometries import LLAMA2
from tests.files import write
from tests.models import random_model

BY = np.linspace(1, 3, 8).tolist()


@pytest.mark.parametrize(
    "content, attention_factor",
    [
        (BY, math.sqrt(1 + math.log(2) / math.log(128))),
        ({"factors": BY, "attention_factor": 1.25, "whatever": None}, 1.25),
        ({"long_factor": BY, "attention_factor": 1.25}, 1.25),
        ({"run": {"factor": 2}, "scores": {"factors": BY, "attention_factor": 1.25}}, 1.25),
    ],
)
def test_factors_from_a_file_are_taken_as_they_are(tmp_path, content, attention_factor):
    model = random_model()
    geometry = rope_geometry(model)
    file = tmp_path / "f.json"
    write(file, content)
    scaling = scale(geometry, "factors", 2, file=file)
    np.testing.assert_allclose(scaling.inv_freq, geometry.inv_freq / BY)
    assert scaling.attention_factor == pytest.approx(attention_factor)
    extend(model, "factors", 2, file=str(file))
    assert model.config.rope_extension["options"] == {"file": "f.json"}  # not where it lies


@pytest.mark.parametrize(
    "content, says",
    [
        (None, "cannot read .*f.json"),
        ("[1, 2]", "no list of 64 factors"),
        (json.dumps([0.0] * 64), "from 0.001"),
        (json.dumps({"factors": [1.0] * 64, "attention_factor": -1}), "attention factor"),
        ('{"run": {"factor": 4}, "scores": {"factors": [1]}}', "are for s = 4"),
    ],
)
def test_bad_files_of_factors_are_refused(tmp_path, content, says):
    file = tmp_path / "f.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=says):
        scale(LLAMA2, "factors", 2, file=file)
