"""Every measured number in the README is the one in the records."""

import re

import pytest
from transformers import AutoModelForCausalLM

from experiments import records
from experiments.records import RESULTS, ROOT
from tables import audit
from tables.extension import comparison, paired_difference
from tests.models import checkpoint

README = (ROOT / "README.md").read_text()


NAMES = ["original", "PI", "NTK-aware", "YaRN", "DPRoPE, t = 0", "DPRoPE, n̂ = 28"]


@pytest.mark.parametrize("index", range(6))
def test_extension_table(index):
    runs = comparison(RESULTS, "smollm2")
    run, yarn = runs[index], runs[3]
    averages = {
        (score["method"], str(score["options"])): f"{1e3 * score['average']:.2f}"
        for record in records.load(RESULTS, "smollm2", "disturbance")
        for score in record["scores"]
        if record["factor"] == 2 and (score["precision"], score["convention"]) == ("float64", "released")
    }
    cells = [averages[run["method"], str(run["options"])]]
    cells += [f"{s['mean']:.3f} [{s['low']:.3f}, {s['high']:.3f}]" for s in run["ranges"]]
    difference = paired_difference(run, yarn, 64)
    cells.append(
        "–" if run is yarn else f"{difference['mean']:+.3f} [{difference['low']:.3f}, {difference['high']:.3f}]"
    )
    lines = [line for line in README.splitlines() if line.startswith(f"| {NAMES[index]} |")]
    found = [[c.strip().replace("**", "") for c in line.strip("|").split("|")][1:] for line in lines]
    assert cells in found


def test_disturbance_table():
    by_factor = {record["factor"]: record["scores"] for record in records.load(RESULTS, "llama2-7b", "disturbance")}

    def value(factor, precision, convention, method):
        (score,) = [
            s
            for s in by_factor[factor]
            if (s["precision"], s["convention"], s["method"], s["options"]) == (precision, convention, method, {})
        ]
        average, count = f"{1e3 * score['average']:.2f}", score["interpolated_dimensions"]
        return f"{average} ({count})" if method == "dprope" else average

    for method, name in (("pi", "PI"), ("yarn", "YaRN"), ("dprope", "DPRoPE, t = 0 (n̂)")):
        lines = [line for line in README.splitlines() if line.startswith(f"| {name} |")]
        cells = [cell.strip() for cell in lines[0].strip("|").split("|")][1:]
        for first, factor in ((1, 2), (5, 4)):
            settings = (("float32", "released"), ("float64", "released"), ("float64", "equation"))
            assert cells[first : first + 3] == [value(factor, *setting, method) for setting in settings]


def test_audit_counts():
    found = audit.findings()
    agree = sum(finding.holds for finding in found)
    assert f"{len(found)} checks, of which {agree} agree" in README


def test_the_three_lines_extend_and_export_a_model(tmp_path, monkeypatch):
    checkpoint(tmp_path / "model")
    (lines,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(lines.splitlines()) == 3
    monkeypatch.chdir(tmp_path)
    exec(lines.replace("Qwen/Qwen2.5-0.5B", str(tmp_path / "model")), {})  # noqa: S102 (the README is ours)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "qwen-extended")
    assert loaded.config.max_position_embeddings == 256
