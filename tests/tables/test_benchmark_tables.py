"""Benchmark tables: published rows as the paper prints them, measured ones from records, never mixed."""

import math

import pytest

from tables import (
    intervals_longbench_e,
    longbench_e,
    open_llm,
    perplexity,
    ruler,
    time_cost,
)
from tests.analysis.recorder import on_texts, score


def rows(table):
    """{block: [cells of each line, as (text, small, bold)]}, the header as texts."""
    return {block.title: [block.header, *block.rows] for block in table.blocks}


def texts(line):
    return [cell.text for cell in line]


def test_published_rows_are_the_papers_and_stand_above(recorder):
    recorder.add("longbench_e", "pi", {"buckets": {"0-4k": score(1)}, "averages": {}, "tasks": {"qasper": {}}})
    table = longbench_e.build(recorder.results())
    blocks = rows(table)
    assert list(blocks)[:2] == ["LLaMA2-7B, published", "LLaMA2-13B, published"] and len(blocks) == 3
    assert table.paper == "Table 1"
    header, *lines = blocks["LLaMA2-7B, published"]
    assert header[1:] == ("0-4k", "4-8k", "8k+", "Avg.", "Avg.>4k")
    seven = {line[0].text: line[1:] for line in lines}
    assert texts(seven["PI (s = 2)"]) == ["28.21", "26.90", "26.79", "27.30", "26.85"]
    assert seven["CLEX (s ≤ 16)"][0].text == "25.22"
    assert texts(seven["DPRoPE (s = 4)"]) == ["29.98", "30.30", "30.09", "30.12", "30.20"]
    assert all(cell.bold and not cell.small for cell in seven["DPRoPE (s = 4)"])
    assert "qasper only" in list(blocks)[2]


def test_an_ablation_stands_below_the_papers(recorder):
    for b in (90, 720):
        scores = {"buckets": {"8k+": score(b / 10)}, "averages": {}}
        recorder.add("longbench_e", "dprope", scores, options={"intervals": b}, seed=0)
    scores = {"buckets": {"8k+": score(36)}, "averages": {}}
    recorder.add("longbench_e", "dprope", scores, seed=0)  # states no b: the default's, 360
    published, measured = intervals_longbench_e.build(recorder.results()).blocks
    assert texts(published.rows[0]) == ["90", "31.47", "31.26", "30.44", "31.06"] and published.header[0] == "b"
    assert [line[0].text for line in measured.rows] == ["90", "360", "720"] and measured.rows[1][1].text == "36.0"
    assert "s = 2" in measured.title


def test_measured_rows_stand_apart_with_intervals_and_their_own_best(recorder):
    for method, at_4k, at_8k in (("yarn", 50, 40), ("original", 60, 0), ("dprope", 55, 45), ("my-method", 1, 2)):
        lengths = {"4096": score(at_4k), "8192": score(at_8k)}
        scores = {"lengths": lengths, "average": score((at_4k + at_8k) / 2)}
        recorder.add("ruler", method, scores, samples=5, tasks=["vt", "cwe"], comparable=["samples"])
    other = {"lengths": {"512": score(99)}, "average": score(99)}
    recorder.add("ruler", "pi", other, samples=1, tasks=["vt", "cwe"], comparable=["samples"], file="other")
    table = ruler.build(recorder.results())
    header, original, yarn, dprope, mine = rows(table)["A Model, measured without training, 2 of 13 tasks"]
    assert header == ("Method", "4k", "8k", "Avg.")
    names = [line[0].text for line in (original, yarn, dprope, mine)]
    assert names == ["Original", "YaRN (s = 2)", "DPRoPE (t = 0) (s = 2)", "My-method (s = 2)"]
    assert (original[1].text, original[1].small, original[1].bold) == ("60.0", "[59.0, 61.0]", True)
    assert (original[2].text, original[2].small, original[2].bold) == ("0.0", "[−1.0, 1.0]", False)
    assert dprope[2].bold and dprope[3].bold and not yarn[3].bold
    _, (_, other) = list(rows(table).items())[-1]  # other samples: a block of its own
    assert other[0].text == "PI (s = 2)" and other[1].text == "99.0"


def test_seeds_become_one_row(recorder):
    for seed, value in enumerate((10.0, 12.0, 17.0)):
        recorder.add("open_llm", "pi", {"average": score(value)}, seed=seed)
    recorder.add("open_llm", "yarn", {"average": score(13.5)}, seed=0)
    _, pi, yarn = rows(open_llm.build(recorder.results()))["A Model, measured fine-tuned, 3 seeds"]
    assert pi[1].text == "13.0" and not pi[1].bold
    assert (yarn[0].text, yarn[1].small, yarn[1].bold) == ("YaRN (s = 2), one seed", "[12.5, 14.5]", True)


@pytest.mark.parametrize("texts", [1, 3, 8])
def test_perplexity_has_an_interval_over_texts_or_each_texts_value(recorder, texts):
    losses = {f"Book {text}": math.log(10 + text) for text in range(texts)}
    recorder.add("perplexity", "pi", **on_texts({8192: losses}))
    recorder.add("perplexity", "yarn", **on_texts({8192: dict.fromkeys(losses, 4.0)}))
    title, (_, pi, _) = list(rows(perplexity.build(recorder.results())).items())[-1]
    printed = {1: "", 3: "(10.00, 11.00, 12.00)"}
    assert pi[1].bold and pi[1].small.startswith(printed.get(texts, "["))
    assert bool(pi[1].small) == (texts > 1) and ("Book 0; Book 1; Book 2" in title) == (texts == 3)


def test_times_are_relative_and_pi_is_timed_again(recorder):
    cells = {"seconds": 1.0, "rounds": 3, "low": 0.9, "high": 1.1}
    times = [
        {"method": method, "options": options, "again": value < 1, "phase": phase, "relative_to_pi": value} | cells
        for method, options, value in (
            ("pi", {}, 1.0),
            ("dprope", {"n_hat": 28}, 1.01),
            ("clex", {"weights": "a_b=c"}, 1.2),
            ("pi", {}, 0.99),
        )
        for phase in ("train", "test")
    ]
    recorder.add("time_cost", None, times, length=512)
    blocks = rows(time_cost.build(recorder.results()))
    assert texts(blocks["LLaMA2-7B, published"][3])[:2] == ["CLEX", "1.62"]
    title, (_, *lines) = list(blocks.items())[-1]
    assert "512 tokens" in title and "3 rounds" in title
    assert [line[0].text for line in lines] == ["PI", "DPRoPE (n̂ = 28)", "CLEX", "PI, again"]
    assert all(len(line) == 3 for line in lines)
    assert (lines[1][1].text, lines[1][1].small) == ("1.010", "[0.900, 1.100]")


def test_an_original_has_a_line_for_each_factor_only_where_its_samples_depend_on_it(recorder):
    for factor in (2, 4):
        recorder.add("perplexity", "original", factor=factor, **on_texts({8192: {"A": 3.0}}))
    _, *lines = list(rows(perplexity.build(recorder.results())).values())[-1]
    assert [line[0].text for line in lines] == ["Original"]
    for method, factor, mean in (("original", 2, 30), ("pi", 2, 30), ("original", 4, 31)):
        recorder.add("open_llm", method, {"average": score(mean)}, factor=factor)
    _, *lines = rows(open_llm.build(recorder.results()))["A Model, measured without training"]
    assert [line[0].text for line in lines] == ["Original (s = 2)", "Original (s = 4)", "PI (s = 2)"]
