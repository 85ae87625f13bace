"""Benchmark tables: published rows as the paper prints them, measured ones from records, seeds put together."""

import json

import pytest
from scipy import stats

from experiments.records import RESULTS
from tables import (
    benchmarks,
    intervals_longbench,
    longbench,
    n_hat_openllm,
    openllm,
    perplexity,
    previous_token,
    ruler,
    temperature,
    time,
)


def score(mean, width=1.0, n=5):
    return {"mean": mean, "low": mean - width, "high": mean + width, "n": n}


@pytest.fixture
def record(tmp_path):
    """record("ruler", "pi", scores, factor=2, seed=None, …) writes a hand-made record."""

    def write(experiment, method, scores, factor=2, options=None, seed=None, **settings):
        made = {"method": method, "factor": factor, "options": options or {}, "scores": scores, **settings}
        if seed is not None:
            made["training"] = {"seed": seed}
        folder = tmp_path / "smollm2" / experiment
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{len(list(folder.iterdir()))}.json").write_text(json.dumps(made))

    return write


def rows(tex):
    """{block: [cells of each line]}"""
    found, block = {}, None
    for line in tex[tex.index("\\toprule") : tex.index("\\bottomrule")].splitlines():
        if line.startswith("\\multicolumn"):
            block = found.setdefault(line.split("\\emph{")[1].split("}}")[0].rstrip("} \\"), [])
        elif "&" in line:
            block.append([cell.strip() for cell in line.removesuffix(r"\\").split("&")])
    return found


def test_published_rows_are_the_papers():
    blocks = rows(longbench.build(RESULTS, "llama2-7b"))
    assert list(blocks)[:2] == ["LLaMA2-7B, published", "LLaMA2-13B, published"]
    seven = {row[0]: row[1:] for row in blocks["LLaMA2-7B, published"]}
    assert seven["Method"] == ["0-4k", "4-8k", "8k+", "Avg.", "Avg.$>$4k"]
    assert seven["PI ($s=2$)"] == ["28.21", "26.90", "26.79", "27.30", "26.85"]
    assert seven["CLEX ($s\\le 16$)"][0] == "25.22"
    assert seven["DPRoPE ($s=4$)"] == [rf"\textbf{{{x}}}" for x in ("29.98", "30.30", "30.09", "30.12", "30.20")]
    (ablation, none) = rows(intervals_longbench.build(RESULTS, "llama2-7b")).items()
    assert ablation[1][1] == ["90", "31.47", "31.26", "30.44", "31.06"]
    assert none[0].startswith("No record") and none[1] == []


def test_measured_rows_stand_apart_with_intervals_and_their_own_best(record, tmp_path):
    for method, at_4k, at_8k in (("yarn", 50, 40), ("original", 60, 0), ("dprope", 55, 45)):
        lengths = {"4096": score(at_4k), "8192": score(at_8k)}
        record(
            "ruler", method, {"lengths": lengths, "average": score((at_4k + at_8k) / 2)}, samples=5, tasks=["vt", "cwe"]
        )
    other = {"lengths": {"512": score(99)}, "average": score(99)}
    record("ruler", "pi", other, samples=1, tasks=["vt", "cwe"])  # other samples: not shown
    block = rows(ruler.build(tmp_path, "smollm2"))["SmolLM2-135M, measured without training, 2 of 13 tasks"]
    assert [row[0] for row in block] == ["Method", "Original", "YaRN ($s=2$)", "DPRoPE ($t=0$) ($s=2$)"]
    assert block[0][1:] == ["4k", "8k", "Avg.", ""]  # as wide as the paper's rows
    assert block[1][1:3] == [r"\textbf{60.0} {\scriptsize[59.0, 61.0]}", r"0.0 {\scriptsize[$-$1.0, 1.0]}"]
    assert block[3][2].startswith(r"\textbf{45.0") and block[3][3].startswith(r"\textbf{50.0")


def test_seeds_become_their_mean_with_an_interval_for_seeds_and_samples(record, tmp_path):
    for seed, value in enumerate((10.0, 12.0, 17.0)):
        record("perplexity", "pi", [{"length": 1024, "token": score(value)}], seed=seed, stride=256, tokens=None)
    record("perplexity", "yarn", [{"length": 1024, "token": score(11.0)}], seed=0, stride=256, tokens=None)
    block = rows(perplexity.build(tmp_path, "smollm2"))["SmolLM2-135M, measured fine-tuned"]
    _, high = stats.t.interval(0.95, 2, scale=stats.sem([10.0, 12.0, 17.0]))
    half = (high**2 + 1.0**2) ** 0.5  # of the seeds, and of each record's samples
    assert block[1][1] == rf"13.00 {{\scriptsize[{13 - half:.2f}, {13 + half:.2f}]}}"
    assert block[2][1] == r"\textbf{11.00} {\scriptsize[10.00, 12.00]}"


def test_whole_texts_stand_below_their_beginnings(record, tmp_path):
    for method, value in (("pi", 30.0), ("yarn", 20.0)):
        record("perplexity", method, [{"length": 8192, "token": score(value)}], stride=4096, tokens=20480)
    record("perplexity", "yarn", [{"length": 8192, "token": score(25.0)}], stride=[4096, 8192], tokens=None)
    blocks = rows(perplexity.build(tmp_path, "smollm2"))
    title = "SmolLM2-135M, measured without training"
    beginnings, whole = list(blocks.items())[-2:]
    assert beginnings[0] == f"{title}, first 20,480 tokens, $S=4096$" and len(beginnings[1]) == 3
    assert whole[0] == f"{title}, $S=4096, 8192$"
    assert [line[:2] for line in whole[1][1:]] == [["YaRN ($s=2$)", r"25.00 {\scriptsize[24.00, 26.00]}"]]


def test_a_missing_cell_says_so(record, tmp_path):
    record("open_llm", "pi", {"truthfulqa": score(30), "mmlu": score(25)})
    record("open_llm", "yarn", {"truthfulqa": score(31)})
    block = rows(openllm.build(tmp_path, "smollm2"))["SmolLM2-135M, measured without training"]
    assert block[0][1:3] == ["TruthfulQA", "MMLU"] and block[2][2] == "no record"


def test_ablations_take_one_family_of_options(record, tmp_path):
    for n_hat in (28, 40, 32):
        record("open_llm", "dprope", {"mmlu": score(n_hat)}, options={"n_hat": n_hat}, seed=0)
    record("open_llm", "dprope", {"mmlu": score(90)}, options={"n_hat": 28}, factor=4, seed=0)
    record("open_llm", "dprope", {"mmlu": score(91)}, options={}, seed=0)
    record("open_llm", "pi", {"mmlu": score(92)}, seed=0)
    tex = n_hat_openllm.build(tmp_path, "smollm2")
    block = rows(tex)["SmolLM2-135M, measured fine-tuned, $s=2$"]
    assert [row[0] for row in block] == [r"$\hat n$", "28", "32", "40"]
    for b in (90, 720):
        options = {"n_hat": 40, "intervals": b}
        record("longbench_e", "dprope", {"buckets": {"8k+": score(b / 10)}, "averages": {}}, options=options, seed=0)
    for seed, value in ((0, 36), (1, 50)):  # trained twice for another table: as the others have, seed 0 alone
        found = {"buckets": {"8k+": score(value)}, "averages": {}}
        record("longbench_e", "dprope", found, options={"n_hat": 40}, seed=seed)
    block = rows(intervals_longbench.build(tmp_path, "smollm2"))["SmolLM2-135M, measured fine-tuned, $s=2$"]
    assert [row[0] for row in block] == ["$b$", "90", "360", "720"] and block[2][1].startswith("36.0")


def test_times_are_relative_to_pi(tmp_path, record):
    cells = {"seconds": 1.0, "rounds": 3, "low": 0.9, "high": 1.1}
    found = [
        {"run": run, "phase": phase, "relative_to_pi": value} | cells
        for run, value in (("pi_s=2", 1.0), ("dprope_n-hat=28_s=2", 1.01))
        for phase in ("train", "test")
    ]
    record("time_cost", None, found, length=512)
    blocks = rows(time.build(tmp_path, "smollm2"))
    assert blocks["LLaMA2-7B, published"][3][:2] == ["CLEX", "1.62"]
    measured = blocks["SmolLM2-135M, measured at 512 tokens, 3 rounds, $s=2$"]
    assert [row[0] for row in measured] == ["Method", "PI", r"DPRoPE ($\hat n=28$)"]
    assert measured[2][1] == r"1.010 {\scriptsize[0.900, 1.100]}"


def test_temperature_and_choice_of_pairs_stand_apart(tmp_path, record):
    settings = [("yarn", {}), ("yarn", {"attention_factor": 1.0}), ("dprope", {"n_hat": 28})]
    settings += [("dprope", {"n_hat": 28, "attention_factor": 1.0693}), ("pi", {})]
    for place, (method, options) in enumerate(settings):
        by_length = [{"length": n, "mean": 0.1 * place, "low": 0.0, "high": 1.0, "n": 10} for n in (8192, 16384)]
        losses = [{"length": n, "token": score(n / 1024 + place)} for n in (8192, 16384)]
        record("passkey", method, {"by_length": by_length}, options=options)
        record("perplexity", method, losses, options=options)
    (block,) = rows(temperature.build(tmp_path, "smollm2")).values()
    assert block[0] == ["Method", "perplexity, 8k", "perplexity, 16k", "passkeys, 8k", "passkeys, 16k"]
    names = [r"YaRN", r"YaRN, attention $\times 1.00$", r"DPRoPE ($\hat n=28$)"]
    assert [row[0] for row in block[1:4]] == names and block[4][0] == names[2] + r", attention $\times 1.07$"
    assert [row[2].split()[0] for row in block[1:]] == ["16.00", "17.00", "18.00", "19.00"]
    assert block[4][4] == r"30.00 {\scriptsize[0.00, 100.00]}"


def test_heads_that_look_back_stand_beside_where_interpolation_moves_them(tmp_path, record):
    heads = [{"layer": 0, "head": 0, "offset": 1, "own": 60.0, "scaled": 1.0}] * 3
    for method, own, scaled in (("original", 60, 1), ("pi", 20, 30)):
        record("previous_token", method, {"heads": heads, "own": score(own), "scaled": score(scaled)})
    (block,) = rows(previous_token.build(tmp_path, "smollm2")).items()
    assert block[0] == "SmolLM2-135M, measured without training, 3 heads"
    assert [[cell.split(" {")[0] for cell in row] for row in block[1]] == [
        ["Method", "$k$ back", "$s k$ back"],
        ["Original", "60.0", "1.0"],
        ["PI ($s=2$)", "20.0", "30.0"],
    ]
    # At another factor it looks elsewhere, so each has a line.
    record("previous_token", "original", {"heads": heads, "own": score(60), "scaled": score(0.5)}, factor=4)
    (lines,) = rows(previous_token.build(tmp_path, "smollm2")).values()
    assert [line[0] for line in lines[1:4]] == ["Original ($s=2$)", "Original ($s=4$)", "PI ($s=2$)"]


def test_an_original_that_is_the_same_at_every_factor_has_one_line(tmp_path, record):
    for factor in (2, 4):
        record("perplexity", "original", [{"length": 8192, "token": score(20)}], factor=factor, stride=256, tokens=None)
    (lines,) = (value for block, value in rows(perplexity.build(tmp_path, "smollm2")).items() if "measured" in block)
    assert [line[0] for line in lines] == ["Method", "Original"]


def test_seeds_that_answer_alike_are_no_more_certain_than_their_samples():
    (found,) = benchmarks.over_seeds([{"a": score(3, 5)}] * 3).values()
    assert found == {"mean": 3, "low": 0, "high": 8, "n": 3}  # no score is negative


def test_over_seeds_of_one_run_are_its_own_interval():
    assert benchmarks.over_seeds([{"a": score(3)}]) == {"a": score(3)}
