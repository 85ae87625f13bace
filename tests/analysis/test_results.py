"""A model's folder of records; what cannot be read is refused by its name."""

import pytest

from analysis.results import NotMeasured, Results, models
from core.errors import InputError


def test_a_scale_is_its_folder(made):
    made.add("ruler", "pi", {})
    results = made.results("my own_model")
    assert models(results.folder) == ["my own_model"] and results.experiments() == ["ruler"]
    assert results.model.title == "A Model" and results.model.context_length == 8192
    with pytest.raises(NotMeasured, match="passkey"):
        results.require("passkey")
    with pytest.raises(InputError, match="my own_model"):
        Results.of("another", results.folder)


@pytest.mark.parametrize("content", ['{"a":', "[]", '{"scores": {"mean": NaN}}', '{"scores": Infinity}', "\x00"])
@pytest.mark.parametrize("name", ["passkey/run.json", "model.json"])
def test_a_broken_file_is_refused_by_its_name(made, name, content):
    made.add("passkey", "pi", {})
    results = made.results()
    file = results.folder / results.model.name / name
    file.write_text(content)
    with pytest.raises(InputError, match=file.name):
        Results.of(results.model.name, results.folder).records("passkey")


def test_a_scale_that_does_not_say_what_it_is_is_refused(made):
    results = made.results()
    (results.folder / results.model.name / "model.json").write_text("{}")
    with pytest.raises(InputError, match="model.json"):
        Results.of(results.model.name, results.folder)
