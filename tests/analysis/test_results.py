"""A model's folder of records; what cannot be read is refused by its name."""

import pytest

from analysis import results
from analysis.results import NotMeasured, Results, models
from analysis.scores import Score
from core.errors import InputError
from tests.models import checkpoint, fine_tuned


def test_a_model_is_its_folder(recorder):
    recorder.add("ruler", "pi")
    measured = recorder.results("my own_model")
    assert models(measured.folder) == ["my own_model"] and measured.experiments() == ["ruler"]
    assert measured.title == "A Model" and measured.context_length == 8192
    with pytest.raises(NotMeasured, match="python -m experiments.passkey --model"):
        measured.require("passkey")
    with pytest.raises(InputError, match="my own_model"):
        Results.of("another", measured.folder)


@pytest.mark.parametrize("content", ["{}", '{"title":'])
def test_a_model_that_does_not_say_what_it_is_is_refused(recorder, content):
    measured = recorder.results()
    (measured.folder / measured.name / "model.json").write_text(content)
    with pytest.raises(InputError, match="model.json"):
        Results.of(measured.name, measured.folder)


@pytest.mark.parametrize("mean", [None, "3", float("inf")])
def test_a_mean_that_is_no_number_is_no_score(mean):
    with pytest.raises(InputError, match="one of them is incomplete"):
        Score.of({"mean": mean, "low": 1.0, "high": 2.0})


def test_a_checkpoints_path_names_the_records_that_experiments_make_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "OWN", tmp_path)
    tuned = tmp_path / "mine/run"
    tuned.mkdir(parents=True)
    fine_tuned(checkpoint(tuned), scale="tiny")
    monkeypatch.chdir(tuned)
    for model, name in (
        (f"{tuned.parent}/", "mine"),
        ("..", "mine"),
        (".", "tiny"),
        ("organisation/mine", "mine"),
    ):
        assert results.chosen(model) == (name, tmp_path)
    assert all(results.chosen(name) == (name, results.RESULTS) for name in ("tiny", "typo", None))
