"""What extending costs on short texts: differences to the unextended model, paired, from hand-made records."""

import numpy as np
import pytest

from analysis.beyond import short_text
from tests.analysis.made import TASKS

METRICS = ["TruthfulQA", "HellaSwag", "MMLU", "ARC-c", "Avg."]


def losses(*values):
    """Two blocks within L, one beyond."""
    return {"length": 12288, "block": 4096, "blocks": {"A": list(values)}, "ranges": [{"end": 8192}, {"start": 8192}]}


def documents(rng, right):
    return {task: (rng.random(100) < right).astype(float).tolist() for task in TASKS}


def named(results, trained):
    return {setting.name: scores for setting, scores in short_text.differences(results, 2, trained).items()}


def test_differences_are_paired_by_document_and_by_text(made):
    rng = np.random.default_rng(0)
    plain = documents(rng, 0.5)
    one_less = {task: scores[:] for task, scores in plain.items()}
    one_less["mmlu"][plain["mmlu"].index(1.0)] = 0.0
    for method, scores in (("original", plain), ("yarn", plain), ("pi", one_less)):
        made.add("open_llm", method, by_document=scores)
    made.add("loss_by_position", "original", **losses(3.0, 5.0, 9.0))
    made.add("loss_by_position", "pi", **losses(3.0 + np.log(1.5), 5.0 + np.log(1.5), 1.0))
    made.add("loss_by_position", "ntk", **losses(1.0, 1.0, 1.0))  # not measured on the benchmarks
    made.add("open_llm", "dprope", options={"n_hat": 30}, by_document=plain, same_selection_as="x")
    made.add("open_llm", "my-method", by_document=plain)

    found = named(made.results(), trained=False)
    assert set(found) == {"YaRN", "PI", "my-method"}
    for metric in METRICS[:4]:
        score = found["YaRN"][metric]
        assert (score.mean, score.low, score.n) == (0, None, 100)  # every document alike
    pi = found["PI"]
    assert pi["Perplexity"].mean == pytest.approx(50)
    assert pi["Perplexity"].low is None  # one text
    assert pi["MMLU"].mean == pytest.approx(-1) and pi["HellaSwag"].mean == 0
    # One document of a hundred: resampled 0 to 3 times, whatever the benchmark's own spread of 5 points.
    assert pi["MMLU"].low == pytest.approx(-3) and pi["MMLU"].high == 0
    assert pi["Avg."].mean == pytest.approx(-0.25) and pi["Avg."].low == pytest.approx(-0.75)


def test_fine_tuned_models_are_means_over_seeds_and_other_samples_do_not_count(made):
    rng = np.random.default_rng(1)
    plain = documents(rng, 0.5)
    seeds = [documents(rng, 0.6) for _ in range(2)]
    made.add("open_llm", "original", by_document=plain, data={"a": 1}, file="original")
    for seed, scores in enumerate(seeds):
        made.add("open_llm", "yarn", by_document=scores, data={"a": 1}, seed=seed)
    (name, found), *rest = named(made.results(), trained=True).items()
    assert name == "YaRN" and not rest
    for task, metric in zip(TASKS, METRICS):
        wanted = 100 * (np.mean([scores[task] for scores in seeds]) - np.mean(plain[task]))
        assert found[metric].mean == pytest.approx(wanted)

    made.add("open_llm", "original", by_document=plain, data={"a": 2}, file="original")
    assert named(made.results(), trained=True) == {}
