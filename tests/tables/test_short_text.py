"""What extending costs on short texts: differences to the unextended model, paired, from hand-made records."""

import json

import numpy as np
import pytest

from tables import short_text

TASKS = ("truthfulqa", "hellaswag", "mmlu", "arc_challenge")
METRICS = ["TruthfulQA", "HellaSwag", "MMLU", "ARC-c", "Avg."]


@pytest.fixture
def write(tmp_path):
    def write(experiment, name, method, options=None, **made):
        folder = tmp_path / "smollm2" / experiment
        folder.mkdir(parents=True, exist_ok=True)
        record = {"method": method, "factor": 2, "options": options or {}, "data": {"a": 1}} | made
        (folder / f"{name}.json").write_text(json.dumps(record))

    return write


def losses(*values):
    """Two blocks within L, one beyond."""
    return {"length": 12288, "block": 4096, "blocks": {"A": list(values)}, "ranges": [{"end": 8192}]}


def documents(rng, right):
    return {task: (rng.random(100) < right).astype(float).tolist() for task in TASKS}


def test_differences_are_paired_by_document_and_by_block(tmp_path, write):
    rng = np.random.default_rng(0)
    plain = documents(rng, 0.5)
    one_less = {task: scores[:] for task, scores in plain.items()}
    one_less["mmlu"][plain["mmlu"].index(1.0)] = 0.0
    write("open_llm", "original", "original", by_document=plain)
    write("open_llm", "yarn", "yarn", by_document=plain)
    write("open_llm", "pi", "pi", by_document=one_less)
    write("extension", "original", "original", **losses(3.0, 5.0, 9.0))
    write("extension", "pi", "pi", **losses(3.0 + np.log(1.5), 5.0 + np.log(1.5), 1.0))
    write("extension", "ntk", "ntk", **losses(1.0, 1.0, 1.0))  # not measured on the benchmarks
    write("open_llm", "twin", "dprope", {"n_hat": 30}, by_document=plain, same_selection_as="x")

    found = short_text.differences(tmp_path, "smollm2", 2, trained=False)
    assert set(found) == {"YaRN", "PI"}
    assert all(found["YaRN"][metric] == {"mean": 0, "low": 0, "high": 0, "n": 100} for metric in METRICS[:4])
    pi = found["PI"]
    assert pi["Perplexity"]["mean"] == pytest.approx(50)
    assert pi["Perplexity"]["low"] == pytest.approx(50) == pi["Perplexity"]["high"]  # the blocks agree
    assert pi["MMLU"]["mean"] == pytest.approx(-1) and pi["HellaSwag"]["mean"] == 0
    # One document of a hundred: resampled 0 to 3 times, whatever the benchmark's own spread of 5 points.
    assert pi["MMLU"]["low"] == pytest.approx(-3) and pi["MMLU"]["high"] == 0
    assert pi["Avg."]["mean"] == pytest.approx(-0.25) and pi["Avg."]["low"] == pytest.approx(-0.75)

    tex = short_text.build(tmp_path, "smollm2")
    assert "SmolLM2-135M, measured without training, $s=2$" in tex and r"$-$1.0 {\scriptsize[$-$3.0, 0.0]}" in tex


def test_fine_tuned_models_are_means_over_seeds_and_other_samples_do_not_count(tmp_path, write):
    rng = np.random.default_rng(1)
    plain = documents(rng, 0.5)
    seeds = [documents(rng, 0.6) for _ in range(2)]
    write("open_llm", "original", "original", by_document=plain)
    for seed, scores in enumerate(seeds):
        write("open_llm", f"yarn_seed={seed}", "yarn", by_document=scores, training={"seed": seed})
    (name, found), *rest = short_text.differences(tmp_path, "smollm2", 2, trained=True).items()
    assert name == "YaRN" and not rest
    for task, metric in zip(TASKS, METRICS):
        wanted = 100 * (np.mean([scores[task] for scores in seeds]) - np.mean(plain[task]))
        assert found[metric]["mean"] == pytest.approx(wanted)

    write("open_llm", "original", "original", by_document=plain, data={"a": 2})
    assert short_text.differences(tmp_path, "smollm2", 2, trained=True) == {}
    assert "No record at this scale." in short_text.build(tmp_path, "smollm2")
