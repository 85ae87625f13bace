"""What the README says is what the records hold; of SmolLM2 in test_readme_smollm2.py."""

import re

import pytest
from transformers import AutoModelForCausalLM

from experiments import records, scales
from experiments.records import RESULTS
from tables import audit, longbench, openllm, perplexity, ruler
from tables.benchmarks import comparable, over_seeds
from tests.models import checkpoint
from tests.readme import PROSE, README, cell


def test_disturbance_table():
    by_factor = {record["factor"]: record["scores"] for record in records.load(RESULTS, "llama2-7b", "disturbance")}

    def value(factor, precision, convention, method):
        (score,) = [
            s
            for s in by_factor[factor]
            if (s["precision"], s["convention"], s["method"], s["options"]) == (precision, convention, method, {})
        ]
        average, count = f"{1e3 * score['average']:.2f}", score["interpolated_dimensions"]
        return f"{average} ({count})" if method.startswith("dprope") else average

    names = {"pi": "PI", "yarn": "YaRN", "dprope": "DPRoPE, t = 0 (n̂)", "dprope-significant": "DPRoPE, significant (n̂)"}
    for method, name in names.items():
        lines = [line for line in README.splitlines() if line.startswith(f"| {name} |")]
        cells = [cell.strip() for cell in lines[0].strip("|").split("|")][1:]
        for first, factor in ((1, 2), (5, 4)):
            settings = (("float32", "released"), ("float64", "released"), ("float64", "equation"))
            assert cells[first : first + 3] == [value(factor, *setting, method) for setting in settings]


def test_audit_counts():
    found = audit.findings()
    agree = sum(finding.holds for finding in found)
    assert f"{len(found)} checks, of which {agree} agree" in README


def test_what_came_out_is_said_below_with_its_source():
    """Every number of the summary stands in the sections that other tests hold to the records."""
    summary, rest = PROSE.split("## What came out ")[1].split("## Extend your own model", 1)
    numbers = re.findall(r"−?\d+\.\d+(?: \[[^]]*\])?", summary)
    assert len(numbers) >= 12 and [number for number in numbers if number not in rest] == []


def test_the_three_lines_extend_and_export_a_model(tmp_path, monkeypatch):
    checkpoint(tmp_path / "model")
    (lines,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(lines.splitlines()) == 3
    monkeypatch.chdir(tmp_path)
    exec(lines.replace("Qwen/Qwen2.5-0.5B", str(tmp_path / "model")), {})  # noqa: S102 (the README is ours)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "qwen-extended")
    assert loaded.config.max_position_embeddings == 256


# Columns of the tables of tiny's fine-tunes: experiment, its scores, and which of them at L' = s·1k tokens.
FINE_TUNED = (
    ("longbench_e", longbench.scores, "Avg.>$L$"),
    ("open_llm", openllm.scores, "Avg."),
    ("ruler", ruler.scores, "{factor}k"),
    ("perplexity", perplexity.scores, "1k"),
    ("perplexity", perplexity.scores, "{factor}k"),
)


def fine_tune_rows(factor: int) -> list[str]:
    """The lines of the README's table for tiny at s = `factor`: means over seeds; of passkeys, all seeds together."""
    lines = []
    names = {"original": "original", "pi": "PI", "yarn": "YaRN", "clex": "CLEX", "dprope": "DPRoPE"}
    for method, options in [("original", {}), *scales.get("tiny").trained(factor)]:

        def group(experiment: str, method=method, options=options) -> list[dict]:
            (found,) = [
                group
                for group in comparable(RESULTS, "tiny", experiment, method != "original")
                if (group[0]["method"], group[0]["options"], group[0]["factor"]) == (method, options, factor)
            ]
            return found

        name = names[method]
        if method == "dprope":
            name += f", n̂ = {options['n_hat']}" if options else ", t = 0"
        cells = [
            cell(over_seeds([scores(run) for run in group(experiment)])[column.format(factor=factor)], 1)
            for experiment, scores, column in FINE_TUNED
        ]
        for length in (1024, 1024 * factor):
            rows = [row for run in group("passkey") for row in run["scores"]["by_length"] if row["length"] == length]
            cells.append(f"{round(sum(row['mean'] * row['n'] for row in rows))}/{sum(row['n'] for row in rows)}")
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


def test_fine_tune_tables():
    for factor in (2, 4):
        lines = fine_tune_rows(factor)
        assert len(lines) == 6 and set(lines) <= set(README.splitlines())


def test_times():
    (record,) = records.load(RESULTS, "tiny", "time_cost")
    for row in record["scores"]:
        if row["run"] != "pi_s=2":
            assert cell(row | {"mean": row["relative_to_pi"]}, 3) in PROSE
            assert f"A training step of {record['length']} tokens" in PROSE and f"the {row['rounds']} rounds" in PROSE


def temperature_rows(factor: int) -> list[str]:
    """The lines of the README's table of YaRN's temperature: perplexity and passkeys at L', untrained and fine-tuned."""
    preset, length, lines = scales.get("tiny"), 1024 * factor, []
    n_hat = preset.n_hat[factor]
    without, with_it = preset.sharpened(factor)
    names = ("YaRN", "YaRN without its temperature", f"DPRoPE, n̂ = {n_hat}", f"DPRoPE, n̂ = {n_hat}, with it")
    for name, setting in zip(names, [("yarn", {}), without, ("dprope", {"n_hat": n_hat}), with_it]):
        cells = []
        for trained in (False, True):
            perplexities, passkeys = (
                next(
                    group
                    for group in comparable(RESULTS, "tiny", experiment, trained)
                    if (group[0]["method"], group[0]["options"], group[0]["factor"]) == (*setting, factor)
                )
                for experiment in ("perplexity", "passkey")
            )
            cells.append(cell(over_seeds([perplexity.scores(run) for run in perplexities])[f"{factor}k"], 1))
            rows = [row for run in passkeys for row in run["scores"]["by_length"] if row["length"] == length]
            cells.append(f"{round(sum(row['mean'] * row['n'] for row in rows))}/{sum(row['n'] for row in rows)}")
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


def test_temperature_tables():
    for factor in (2, 4):
        assert set(temperature_rows(factor)) <= set(README.splitlines())


@pytest.mark.parametrize(
    ("scale", "trained", "method", "options", "factor"),
    [
        ("tiny", False, "original", {}, 2),
        ("tiny", False, "pi", {}, 2),
        ("tiny", False, "pi", {}, 4),
        ("tiny", True, "pi", {}, 2),
        ("tiny", True, "pi", {}, 4),
        ("tiny", False, "dprope", {}, 2),
        ("tiny", False, "dprope", {"n_hat": 20}, 2),
        ("tiny", False, "yarn", {}, 2),
        ("smollm2", True, "pi", {}, 2),
        ("smollm2", True, "clex", {}, 2),
        ("smollm2", True, "yarn", {}, 2),
        ("smollm2", True, "dprope", {"n_hat": 28}, 2),
        ("smollm2", True, "dprope-significant", {}, 2),
        *(("smollm2", False, method, options, 2) for method, options in scales.get("smollm2").comparison(2)),
    ],
)
def test_heads_that_look_back(scale, trained, method, options, factor):
    """Shares of attention, as the README prints them."""
    (group,) = [
        group
        for group in comparable(RESULTS, scale, "previous_token", trained)
        if (group[0]["method"], group[0]["options"], group[0]["factor"]) == (method, options, factor)
    ]
    for name in ("own", "scaled") if method == "pi" else ("own",):
        assert cell(over_seeds([{name: run["scores"][name]} for run in group])[name], 1) in PROSE
