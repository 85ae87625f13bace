"""A model's folder of records; what cannot be read is refused by its name."""

import pytest

from analysis.results import NotMeasured, Results, _known, models
from core.errors import InputError
from experiments import base_models


def test_a_model_is_its_folder(made):
    made.add("ruler", "pi", {})
    results = made.results("my own_model")
    assert models(results.folder) == ["my own_model"] and results.experiments() == ["ruler"]
    assert results.model.title == "A Model" and results.model.context_length == 8192
    with pytest.raises(NotMeasured, match="passkey"):
        results.require("passkey")
    assert results.command("passkey").endswith(f"--model 'PATH/my own_model' --results {results.folder}")
    committed = Results.of("tiny").command("passkey", "--method pi")
    assert committed == "python -m experiments.passkey --model tiny --method pi"
    with pytest.raises(InputError, match="my own_model"):
        Results.of("another", results.folder)


@pytest.mark.parametrize("content", ["{}", '{"title":'])
def test_a_model_that_does_not_say_what_it_is_is_refused(made, content):
    results = made.results()
    (results.folder / results.model.name / "model.json").write_text(content)
    with pytest.raises(InputError, match="model.json"):
        Results.of(results.model.name, results.folder)


def test_the_known_models_are_those_that_experiments_know():
    assert _known() == set(base_models.MODELS)
