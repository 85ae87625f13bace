"""What single tables need of their records: disturbances, times, temperatures, n̂, passkeys, the model as it is."""

import pytest

from analysis import disturbance, passkey, time_cost
from analysis.beyond import n_hat, temperature, unextended
from analysis.comparison import compared
from analysis.disturbance import WAYS
from analysis.results import Results
from tests.analysis.made import score


def test_disturbance_stands_beside_what_the_paper_published():
    rows = {row.name: row for row in disturbance.rows(Results.of("llama2-7b"))}
    for name, at_8k, at_16k in (("PI", 24.08, 33.67), ("YaRN", 25.55, 35.44), ("DPRoPE (t = 0)", 6.71, 22.92)):
        assert rows[name].published == {2.0: at_8k, 4.0: at_16k}
        for factor, published in rows[name].published.items():
            assert rows[name].moved[factor][WAYS[0]].average == pytest.approx(published, rel=0.004)
    exact = [rows["PI"].moved[factor][way].average for factor in (2.0, 4.0) for way in WAYS[1:]]
    assert exact == pytest.approx([24.06, 190.78, 33.62, 210.38], abs=0.005)
    assert rows["original"].published == {} and rows["DPRoPE (n̂ by hand)"].published == {}
    assert 0 < disturbance.deviation(list(rows.values())) < 0.004


def test_another_geometry_has_no_published_disturbance():
    found = disturbance.rows(Results.of("smollm2"))
    assert not any(row.published for row in found) and disturbance.deviation(found) == 0


def test_n_hat_by_hand_is_one_row_and_any_other_setting_its_own(made):
    made.facts["n_hat"] = {"2": 28, "4": 26}
    for factor, count in ((2, 28), (4, 26)):
        settings = [
            ("dprope", {"n_hat": count}),
            ("dprope", {"n_hat": 60}),
            ("pi", {"resonance": True}),
            ("dropped", {}),
        ]
        entry = {"precision": "float64", "convention": "released", "average": 1e-3, "interpolated_dimensions": 2}
        entries = [entry | {"method": method, "options": options} for method, options in settings]
        made.add("disturbance", None, entries, factor=factor)
    names = [row.name for row in disturbance.rows(made.results())]
    assert names == [
        "DPRoPE (n̂ by hand)",
        "DPRoPE (n̂ = 60)",
        "PI (resonance)",
    ]  # no row is of a method that is not registered


def test_times_are_by_setting_and_phase():
    cells = {"seconds": 1.0, "rounds": 3, "relative_to_pi": 1.01, "low": 0.9, "high": 1.1}
    settings = [
        ("pi", {}, False),
        ("dprope", {"n_hat": 28}, False),
        ("clex", {"weights": "a_b=c"}, False),
        ("pi", {}, True),
    ]
    found = [
        {"method": method, "options": options, "again": again, "phase": phase} | cells
        for method, options, again in settings
        for phase in ("train", "test")
    ]
    timed = time_cost.rows({"factor": 2, "scores": found})
    assert [name for name, _ in timed] == ["PI", "DPRoPE (n̂ = 28)", "CLEX", "PI, again"]
    assert list(timed[0][1]) == ["train", "test"] and timed[0][1]["test"].mean == 1.01


def test_a_setting_with_an_attention_factor_stands_beside_the_same_without(made):
    settings = [("yarn", {}), ("yarn", {"attention_factor": 1.0}), ("dprope", {"n_hat": 28})]
    settings += [("dprope", {"n_hat": 28, "attention_factor": 1.0693}), ("pi", {}), ("dprope", {})]
    settings += [("my-method", {}), ("my-method", {"attention_factor": 1.5})]
    for place, (method, options) in enumerate(settings):
        by_length = [{"length": n, "mean": 0.1 * place, "low": 0.0, "high": 1.1, "n": 10} for n in (8192, 16384)]
        losses = [{"length": n, "token": score(n / 1024 + place)} for n in (4096, 8192, 16384)]
        made.add("passkey", method, {"by_length": by_length}, options=options)
        if method != "my-method":
            made.add("perplexity", method, losses, options=options)
    by_factor, left_out = temperature.rows(made.results(), trained=False)
    found = {setting.name: scores for setting, scores in by_factor[2.0].items()}
    names = ["YaRN", "YaRN, attention × 1.00", "DPRoPE (n̂ = 28)", "DPRoPE (n̂ = 28), attention × 1.07"]
    assert list(found) == [*names, "my-method", "my-method, attention × 1.50"] and not left_out
    assert list(found["YaRN"]) == ["perplexity, 8k", "perplexity, 16k", "passkeys, 8k", "passkeys, 16k"]
    assert [found[name]["perplexity, 16k"].mean for name in names] == [16, 17, 18, 19]
    last = found[names[3]]["passkeys, 16k"]
    assert (last.mean, last.low, last.high) == (pytest.approx(30), 0, 100)  # no more can be found
    assert list(found["my-method"]) == ["passkeys, 8k", "passkeys, 16k"]


def test_n_hat_by_every_evaluation(made):
    """Three n̂, one of them measured under another name."""
    ranges = [{"start": 0}, {"start": 8192}]

    def extension(n_hat, *losses, **more):
        blocks = {"block": 4096, "blocks": {"A": list(losses)}, "ranges": ranges}
        made.add("loss_by_position", "dprope", options={"n_hat": n_hat}, **blocks, **more)

    extension(24, 9, 9, 3, 5)
    extension(8, 9, 9, 2, 2)
    extension(36, 9, 9, 5, 5, same_selection_as="another")
    for count, found in ((24, (1, 0.5)), (8, (0.5, 0))):
        rows = [{"length": 4096 * i, "n": 2, "mean": mean} | {"low": 0, "high": 1} for i, mean in enumerate(found, 1)]
        made.add("passkey", "dprope", {"by_length": rows}, options={"n_hat": count})
    for count in (24, 8):  # of another factor
        made.add("ruler", "dprope", {}, options={"n_hat": count}, factor=4)
    factor, columns = n_hat.columns(made.results())
    found = {column.title: {n: score.mean for n, score in column.scores.items()} for column in columns}
    assert factor == 2 and found["Loss"] == {8: 2, 24: 4, 36: 5}
    assert found["Passkeys"] == {24: pytest.approx(75), 8: pytest.approx(25)}  # three and one of four
    assert not any(found[title] for title in ("Perplexity, 16k", "RULER, 16k", "Open LLM"))


def test_passkeys_of_all_seeds_are_counted_together(made):
    for seed, means in enumerate(((1.0, 0.5), (1.0, 0.0))):
        rows = [{"length": n, "n": 4} | {"mean": m, "low": 0, "high": 1} for n, m in zip((4096, 16384), means)]
        made.add("passkey", "pi", {"by_length": rows}, seed=seed)
    (row,) = compared(made.results(), "passkey", True).rows
    found = passkey.by_length(row)
    assert {name: (keys.found, keys.asked) for name, keys in found.items()} == {
        "4k": (8, 8),
        "16k": (2, 8),
        "all": (10, 16),
    }
    assert found["16k"].share.mean == 25 and found["4k"].share.high == 100


def test_the_model_as_it_is_comes_from_what_no_method_extended_first(made):
    def keys(length, mean):
        return {"by_length": [{"length": length, "n": 4, "mean": mean, "low": 0, "high": 1}]}

    made.add("passkey", "original", keys(8192, 0.5), factor=4)
    made.add("passkey", "original", keys(16384, 0.25), factor=2)
    made.add("passkey", None, keys(8192, 1.0), factor=1)
    made.add("passkey", "pi", keys(4096, 0.0))
    made.add("my_benchmark", "original", {"accuracy": score(12, n=30)})
    lines = {line.name: line for line in unextended.lines(made.results())}
    assert {name: line.score.mean for name, line in lines.items()} == {
        "Passkeys, 8k": 100,
        "Passkeys, 16k": 25,
        "my_benchmark, accuracy": 12,
    }
    assert lines["Passkeys, 8k"].amount == "4 prompts" and lines["my_benchmark, accuracy"].amount == "30 samples"
