"""A model's folder of records; what cannot be read is refused by its name."""

import json

import pytest

from analysis import results
from analysis.results import NotMeasured, Results, _known, models
from core.errors import InputError
from experiments import base_models


def test_a_model_is_its_folder(recorder):
    recorder.add("ruler", "pi", {})
    measured = recorder.results("my own_model")
    assert models(measured.folder) == ["my own_model"] and measured.experiments() == ["ruler"]
    assert measured.model.title == "A Model" and measured.model.context_length == 8192
    with pytest.raises(NotMeasured, match="passkey"):
        measured.require("passkey")
    assert measured.command("passkey").endswith(f"--model 'PATH/my own_model' --results {measured.folder}")
    committed = Results.of("tiny").command("passkey", "--method pi")
    assert committed == "python -m experiments.passkey --model tiny --method pi"
    with pytest.raises(InputError, match="my own_model"):
        Results.of("another", measured.folder)
    assert _known() == set(base_models.MODELS)


@pytest.mark.parametrize("content", ["{}", '{"title":'])
def test_a_model_that_does_not_say_what_it_is_is_refused(recorder, content):
    measured = recorder.results()
    (measured.folder / measured.model.name / "model.json").write_text(content)
    with pytest.raises(InputError, match="model.json"):
        Results.of(measured.model.name, measured.folder)


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ('{"loss": NaN}', "'loss'"),
        ('{"a": 1, "losses": [1.5, -Infinity], "b": {"c": 1}}', "'losses'"),
        ('{"seconds": 1e999}', "'seconds'"),
        ('{"a": 1', ""),
        ("[1]", ""),
    ],
)
def test_a_broken_record_is_refused_with_its_file_and_key(tmp_path, content, key):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match=f"run.json.*{key}"):
        results.read(tmp_path / "run.json")


def test_a_key_that_a_record_lacks_is_named_with_its_file(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"scores": {"mean": 1}}))
    with pytest.raises(InputError, match=r"run.json does not say 'low'"):
        results.read(tmp_path / "run.json")["scores"]["low"]
