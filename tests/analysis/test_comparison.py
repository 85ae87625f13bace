"""Which records stand in one block, in which order, and which of them an ablation goes through."""

import contextlib
from dataclasses import replace

import pytest

from analysis import metrics, results
from analysis.comparison import ablations, check_formula, compared, comparisons, in_comparison
from core import rope
from core.errors import InputError
from core.setting import Setting
from records import identity, of_scaling
from tests.analysis.recorder import score


def test_records_whose_comparable_fields_agree_are_a_set_and_the_largest_is_first(recorder):
    for method, samples in (("ntk", 1), ("yarn", 5), ("pi", 5)):
        asked = {"samples": samples, "a_field_that_not_all_name": method}
        recorder.add("ruler", method, comparable=["samples"], **asked)
    results = recorder.results()
    sets = comparisons(results, "ruler", trained=False)
    assert [[row.setting.method for row in rows.rows] for rows in sets] == [["pi", "yarn"], ["ntk"]]
    assert compared(results, "ruler", trained=False).rows == sets[0].rows
    assert not compared(results, "ruler", trained=True)


def test_seeds_of_one_setting_are_one_row_and_fine_tuned_ones_stand_apart(recorder):
    for seed in (0, 1):
        recorder.add("open_llm", "pi", {"tasks": {"mmlu": score(20 + seed)}}, seed=seed)
    recorder.add("open_llm", "pi", {"tasks": {"mmlu": score(10)}})
    results = recorder.results()
    (tuned,), (plain,) = (compared(results, "open_llm", trained).rows for trained in (True, False))
    assert tuned.seeds == (0, 1) and tuned.scores(metrics.open_llm)["MMLU"].mean == 20.5
    recorder.add(
        "open_llm", "pi", {"tasks": {"mmlu": score(40)}}, seed=2, training={"settings": "other"}
    )
    with pytest.raises(InputError, match="different settings"):
        compared(recorder.results(), "open_llm", trained=True)
    assert plain.seeds == () and plain.scores(metrics.open_llm)["MMLU"].mean == 10


@pytest.mark.parametrize(
    "other, sets",
    [
        ({}, 1),
        ({"batch": 4, "length": 1024}, 1),  # as many tokens a step, as CLEX's
        ({"data": [["B.txt", "hash"]]}, 2),
        ({"learning_rate": 1e-4}, 2),
        ({"batch": 8}, 2),
    ],
)
def test_fine_tunes_that_were_trained_otherwise_are_not_compared(recorder, other, sets):
    usual = {"data": "books", "learning_rate": 3e-5, "batch": 2, "length": 2048}
    for method, settings in (("yarn", usual), ("pi", usual | other)):
        run = recorder.add("finetune", method, {"losses": [3.0]}, **settings)["run"]
        training = {"identity": identity(experiment="finetune", **run)}
        recorder.add("ruler", method, seed=0, training=training)
    assert len(comparisons(recorder.results(), "ruler", trained=True)) == sets


def test_an_option_of_a_users_own_method_is_no_ablation(recorder, monkeypatch):
    mine = replace(rope.METHODS["ntk"], name="mine", title="Mine")
    monkeypatch.setitem(rope.METHODS, "mine", mine)
    for method, there in (("mine", True), ("yarn", False), ("dprope-covered", False)):
        recorder.add("ruler", method, options={"attention_factor": 1.2})
        setting = Setting.make(method, {"attention_factor": 1.2}, 2)
        assert in_comparison(recorder.results(), setting) == there


def test_the_comparison_has_the_models_n_hat_and_no_other(recorder):
    combined = {"n_hat": 28, "intervals": 90}
    factor = {"attention_factor": 1.0}
    for options in ({}, {"n_hat": 28}, {"n_hat": 40}, combined, factor, {"other": 1}):
        recorder.add("ruler", "dprope", options=options)
    results = recorder.results()
    shown = [
        dict(row.setting.options)
        for row in compared(results, "ruler", False).rows
        if in_comparison(results, row.setting)
    ]
    assert shown == [{}, {"other": 1}, {"n_hat": 28}]


def test_an_ablation_takes_the_family_with_most_values(recorder):
    for n_hat in (28, 40, 32):
        recorder.add("open_llm", "dprope", options={"n_hat": n_hat}, seed=0)
    recorder.add("open_llm", "dprope", options={"n_hat": 28}, factor=4, seed=0)
    recorder.add("open_llm", "dprope", seed=0)
    recorder.add("open_llm", "pi", seed=0)
    (rows,) = ablations(recorder.results(), "open_llm", "n_hat")
    assert list(rows) == [28, 32, 40]
    assert rows[28].state == "fine-tuned" and rows[28].setting.factor == 2


def test_an_ablation_compares_the_seeds_that_all_values_have(recorder):
    for b in (90, 720):
        recorder.add("longbench_e", "dprope", options={"n_hat": 40, "intervals": b}, seed=0)
    for seed in (0, 1):  # trained twice for another table
        recorder.add("longbench_e", "dprope", options={"n_hat": 40}, seed=seed)
    (rows,) = ablations(recorder.results(), "longbench_e", "intervals")
    assert list(rows) == [90, 360, 720] and [row.seeds for row in rows.values()] == [(0,)] * 3


def test_an_ablation_takes_what_was_measured_of_the_same_pairs_under_another_name(recorder):
    for n_hat in (28, 40):
        recorder.add("open_llm", "dprope", options={"n_hat": n_hat})
    recorder.add("open_llm", "dprope", {"tasks": {"mmlu": score(48)}})
    results = recorder.results("smollm2")  # its suite compares 24, 28, 36, 40 and 48
    of_formula = rope.scale(results.geometry, "dprope", 2)
    assert 2 * of_formula.interpolated.sum() == 48
    (rows,) = ablations(results, "open_llm", "n_hat")
    assert list(rows) == [28, 40, 48]
    assert rows[48].setting == Setting("dprope", (("n_hat", 48),), 2.0)
    assert rows[48].scores(metrics.open_llm)["MMLU"].mean == 48


def test_a_title_that_names_another_method_in_tables_is_refused():
    with pytest.raises(InputError, match="with the title 'YaRN'"):
        rope.register("mine", "YaRN")(lambda geometry, factor: None)
    assert "mine" not in rope.METHODS


def test_two_attention_factors_have_two_names():
    for value, name in ((1.07, "× 1.07"), (1.0693, "× 1.0693"), (1.0, "× 1.00")):
        assert Setting("yarn", (("attention_factor", value),), 2).name.endswith(name)


@pytest.mark.parametrize("moved", [0, 1e-9, 1e-3])
def test_a_record_of_another_formula_than_the_method_has_now_is_refused(recorder, moved):
    """Rounding on another machine is none."""
    results = recorder.results()
    now = rope.scale(results.geometry, "yarn", 2)
    before = replace(now, inv_freq=now.inv_freq * (1 + moved))
    recorder.add("passkey", "yarn", scaling=of_scaling(before))
    refused = pytest.raises(InputError, match="another formula of 'yarn'")
    with refused if moved == 1e-3 else contextlib.nullcontext():
        assert len(compared(recorder.results(), "passkey", False).rows) == 1


@pytest.mark.parametrize("measured", results.every(), ids=lambda each: each.name)
def test_the_committed_records_are_of_the_formulas_that_their_methods_have(measured):
    for part in (measured, *measured.parts()):
        for record in (each for name in part.experiments() for each in part.records(name)):
            check_formula(record, measured.plain)
