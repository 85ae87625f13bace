"""Which records stand in one table, in which order, and which are left out, with the reason."""

import pytest

from analysis import metrics
from analysis.comparison import ablation, compared, in_comparison
from core.errors import InputError
from tests.analysis.made import score


def test_records_whose_stated_fields_agree_are_compared_and_others_named(made):
    for method, samples in (("yarn", 5), ("pi", 5), ("ntk", 1)):
        made.add("ruler", method, {}, samples=samples, comparable=["samples"], file=method)
    found = compared(made.results(), "ruler", trained=False)
    assert [row.setting.method for row in found.rows] == ["pi", "yarn"]
    assert [str(record) for record in found.left_out] == ["ruler/ntk.json (samples 1)"]


def test_a_field_that_a_record_does_not_name_leaves_nothing_out(made):
    made.add("ruler", "pi", {}, samples=5, comparable=["samples"], a_new_field=1)
    made.add("ruler", "yarn", {}, samples=5, comparable=["samples"])
    found = compared(made.results(), "ruler", trained=False)
    assert len(found.rows) == 2 and not found.left_out


def test_seeds_of_one_setting_are_one_row_and_fine_tuned_ones_stand_apart(made):
    for seed in (0, 1):
        made.add("open_llm", "pi", {"mmlu": score(20 + seed)}, seed=seed)
    made.add("open_llm", "pi", {"mmlu": score(10)})
    results = made.results()
    (tuned,), (plain,) = (compared(results, "open_llm", trained).rows for trained in (True, False))
    assert tuned.seeds == (0, 1) and tuned.scores(metrics.open_llm)["MMLU"].mean == 20.5
    assert plain.seeds == () and plain.scores(metrics.open_llm)["MMLU"].mean == 10


def test_the_comparison_has_the_models_n_hat_and_no_other(made):
    listed = in_comparison(made.results().model)
    options = (
        {},
        {"n_hat": 28},
        {"n_hat": 40},
        {"n_hat": 28, "intervals": 90},
        {"attention_factor": 1.0},
        {"other": 1},
    )
    made.records.clear()
    for own in options:
        made.add("ruler", "dprope", {}, options=own)
    shown = [dict(row.setting.options) for row in compared(made.results(), "ruler", False).rows if listed(row)]
    assert shown == [{}, {"other": 1}, {"n_hat": 28}]


def test_an_ablation_takes_the_family_with_most_values(made):
    for n_hat in (28, 40, 32):
        made.add("open_llm", "dprope", {"mmlu": score(n_hat)}, options={"n_hat": n_hat}, seed=0)
    made.add("open_llm", "dprope", {"mmlu": score(90)}, options={"n_hat": 28}, factor=4, seed=0)
    made.add("open_llm", "dprope", {"mmlu": score(91)}, seed=0)
    made.add("open_llm", "pi", {"mmlu": score(92)}, seed=0)
    found = ablation(made.results(), "open_llm", "n_hat", trained=True)
    assert list(found) == [28, 32, 40] and found[28].setting.factor == 2
    assert ablation(made.results(), "open_llm", "n_hat", trained=False) == {}


def test_an_ablation_compares_the_seeds_that_all_values_have(made):
    for b in (90, 720):
        made.add("longbench_e", "dprope", {}, options={"n_hat": 40, "intervals": b}, seed=0)
    for seed in (0, 1):  # trained twice for another table
        made.add("longbench_e", "dprope", {}, options={"n_hat": 40}, seed=seed)
    found = ablation(made.results(), "longbench_e", "intervals", trained=True, default=360)
    assert list(found) == [90, 360, 720] and [row.seeds for row in found.values()] == [(0,)] * 3


def test_a_copied_record_is_no_further_seed(made):
    for file in ("pi", "copy"):
        made.add("ruler", "pi", {}, seed=0, file=file)
    with pytest.raises(InputError, match="record the same run"):
        compared(made.results(), "ruler", True)
