"""What the README says is what the records hold, or what the tested pages under results/ say."""

import re

import pytest
from transformers import AutoModelForCausalLM

from experiments import records
from experiments.records import RESULTS
from tables import audit, ruler
from tables.extension import fine_tuned, paired_difference, same_text
from tests.models import checkpoint
from tests.readme import PROSE, README, cell, name_of, page, signed
from tests.results.smollm2 import cost_within, keys_found, measured, points

METHODS = ("original", "PI", "NTK-aware", "YaRN", "CLEX")
SETTINGS = (*METHODS, *(f"DPRoPE, {setting}" for setting in ("t = 0", "n̂ = 40", "n̂ = 28", "significant")))
NUMBER = r"−?\d+\.\d+(?: \[[^]]*\])?"


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
    """Every number of the summary stands in the sections and pages that other tests hold to the records."""
    summary, rest = PROSE.split("## What came out ")[1].split("## Extend your own model", 1)
    rest += "".join(page(f"results/{scale}/README.md")[1] for scale in ("tiny", "smollm2"))
    numbers = re.findall(NUMBER, summary)
    assert len(numbers) >= 12 and [number for number in numbers if number not in rest] == []


def test_the_summary_of_the_small_model_is_from_its_page():
    summary = PROSE.split("### A small model, fine-tuned ")[1].split("### A real model")[0]
    _, details = page("results/tiny/README.md")
    numbers = re.findall(NUMBER, summary.replace("5.3 M parameters", ""))
    assert len(numbers) == 3 and [number for number in numbers if number not in details] == []


@pytest.mark.parametrize("trained", (False, True))
def test_the_summary_of_the_real_model(trained):
    assert set(summary_rows(trained)) <= set(README.splitlines())


def summary_rows(trained: bool) -> list[str]:
    """The lines of the summary of SmolLM2: loss beyond L, cost within L, RULER and passkeys of the main settings."""
    untrained = same_text(RESULTS, "smollm2")
    runs = {name_of(run): run for run in (fine_tuned(RESULTS, "smollm2", untrained[0]) if trained else untrained)}
    within, prompts, keys = cost_within(trained), measured("ruler", trained), keys_found(trained)
    lines = []
    for name in filter(keys.get, SETTINGS):
        cost = within.get(name, {})
        cells = [
            signed(paired_difference(runs[name], runs["YaRN"], 64)) if name != "YaRN" else "–",
            *(points(cost.get(column)) for column in ("Perplexity", "Avg.")),
            cell(ruler.scores(prompts[name])["Avg."], 1) if name in prompts else "–",
            f"{sum(keys[name].values()):.0f}/{len(keys[name])}",
        ]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


def test_the_three_lines_extend_and_export_a_model(tmp_path, monkeypatch):
    checkpoint(tmp_path / "model")
    (lines,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(lines.splitlines()) == 3
    monkeypatch.chdir(tmp_path)
    exec(lines.replace("Qwen/Qwen2.5-0.5B", str(tmp_path / "model")), {})  # noqa: S102 (the README is ours)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "qwen-extended")
    assert loaded.config.max_position_embeddings == 256
