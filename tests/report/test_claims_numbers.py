"""Numbers of results/claims.csv, computed again from the records with pandas and SciPy alone.

Bootstrapped intervals are compared with normal ones, to a tenth of their width; all else to the last printed digit.
"""

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

RESULTS = Path(__file__).parents[2] / "results"
CONTEXT = {"tiny": 1024, "smollm2": 8192}
TEXTS = {"tiny": 8, "smollm2": 3}
N_HAT = {2: {"n_hat": 40}, 4: {"n_hat": 32}}  # 5/8 and 1/2 of 64
RIVALS = [("pi", {}), ("yarn", {}), ("clex", {})]


@pytest.fixture(scope="module")
def claims():
    return pd.read_csv(RESULTS / "claims.csv").set_index(["key", "model"])


def by_setting(model, experiment, trained):
    """The records of an experiment by method, options and factor, and by seed, -1 without training."""
    runs = {}
    for file in sorted((RESULTS / model / experiment).glob("*.json")):
        run = json.loads(file.read_text())
        seed = run["training"]["seed"] if "training" in run else -1
        if (seed >= 0) == trained and (experiment != "perplexity" or len(run["data"]) == TEXTS[model]):
            runs.setdefault((run["method"], json.dumps(run["options"]), run["factor"]), {})[seed] = run
    return runs


def pair(runs, ours, other, factor):
    """The records of two settings by the seeds that both have; empty where one is not there."""
    both = [runs.get((method, json.dumps(options), factor), {}) for method, options in (ours, other)]
    return [[each[seed] for each in both] for seed in sorted(both[0].keys() & both[1].keys())]


def estimate(mean, *errors):
    """(mean, standard error, degrees of freedom) of independent errors, by Welch and Satterthwaite."""
    error = np.sqrt(sum(each**2 for each, _ in errors))
    return float(mean), error, error**4 / sum(each**4 / freedom for each, freedom in errors)


def of_sample(values):
    return values.std(ddof=1) / np.sqrt(len(values)), len(values) - 1


def at_holms_level(estimates, key):
    """(mean, low, high) of one of several estimates that are decided together."""
    p = {name: 2 * stats.t.sf(abs(mean) / error, freedom) for name, (mean, error, freedom) in estimates.items()}
    for rank, name in enumerate(sorted(p, key=p.get)):
        level = 0.05 / (len(p) - rank)
        if p[name] > level or name == key:
            break
    mean, error, freedom = estimates[key]
    half = stats.t.ppf(1 - level / 2, freedom) * error
    return [mean, mean - half, mean + half]


def losses(run, length):
    """Nats per token of each text."""
    windows = pd.DataFrame(run["by_window"]).T.set_axis(["loss", "tokens"], axis=1)
    text, lengths, _ = zip(*windows.index.str.rsplit("/", n=2))
    sums = windows[np.array(lengths) == str(length)].groupby(np.array(text)[np.array(lengths) == str(length)]).sum()
    return sums["loss"] / sums["tokens"]


def gaps(model, runs, ours, other, factor):
    """One setting's loss at L' minus another's, [seeds, texts]."""
    pairs = pair(runs, ours, other, factor)
    return np.array([np.subtract(*(losses(run, factor * CONTEXT[model]) for run in both)) for both in pairs])


@pytest.mark.parametrize(("key", "trained"), [("perplexity", True), ("less_is_better", False)])
def test_losses_of_tiny(claims, key, trained):
    runs, family, zero = by_setting("tiny", "perplexity", trained), {}, ("dprope", {})
    for factor in (2, 4):
        own = ("dprope", N_HAT[factor])
        untrained = itertools.combinations([*RIVALS[:2], zero, own], 2)
        for ours, other in itertools.product([own], RIVALS) if trained else untrained:
            values = gaps("tiny", runs, ours, other, factor)
            assert values.shape == (3 if trained else 1, 8)
            samples = [values.mean(axis=0), values.mean(axis=1)] if trained else [values[0]]
            family[factor, str((ours, other))] = estimate(values.mean(), *map(of_sample, samples))
    pair_shown = (("dprope", N_HAT[2]), ("yarn", {})) if trained else (zero, ("dprope", N_HAT[2]))
    row = claims.loc[key, "tiny"]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx(
        at_holms_level(family, (2, str(pair_shown))), rel=1e-4
    )
    assert row["measured_on"].endswith("8 texts")


def by_group(run, experiment):
    """What is drawn anew, in per cent: of Open LLM documents, of LongBench-E beyond L a task's means at two lengths."""
    if experiment == "open_llm":
        return [100 * np.array(scores) for scores in run["by_document"].values()]
    tasks = run["scores"]["tasks"].values()
    return [np.array([of[bucket]["mean"] for of in tasks]) for bucket in ("4-8k", "8k+")]


@pytest.mark.parametrize(("key", "model"), [("longbench_e", "tiny"), ("open_llm", "tiny"), ("open_llm", "smollm2")])
def test_benchmarks(claims, key, model):
    runs, family = by_setting(model, key, trained=model == "tiny"), {}
    for factor, rival in itertools.product((2, 4), RIVALS):
        if pairs := pair(runs, ("dprope", N_HAT[factor]), rival, factor):
            values = [[a - b for a, b in zip(*(by_group(run, key) for run in both))] for both in pairs]
            groups = [np.mean(group, axis=0) for group in zip(*values)]
            of_seeds = np.array([np.mean([group.mean() for group in of_seed]) for of_seed in values])
            errors = [(np.sqrt(sum(group.var() / len(group) for group in groups)) / len(groups), 1e9)]
            errors += [of_sample(of_seeds)] if len(pairs) > 1 else []
            family[factor, rival[0]] = estimate(of_seeds.mean(), *errors)
    row, (mean, low, high) = claims.loc[key, model], at_holms_level(family, (2, "yarn"))
    assert row["mean"] == pytest.approx(mean, abs=1e-4)
    assert [row["low"], row["high"]] == pytest.approx([low, high], abs=0.1 * (high - low))
