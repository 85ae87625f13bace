"""Passkeys are counted over seeds and lengths, perplexity over texts."""

import numpy as np
import pytest
from scipy import stats

from analysis import metrics
from analysis.comparison import compared
from analysis.metrics import passkeys_by_length
from tests.analysis.recorder import of_passkeys, score


def test_perplexity_is_that_of_the_mean_loss_over_texts(recorder):
    """A book's loss is that of all its parts' tokens."""
    rng = np.random.default_rng(0)
    nats = rng.uniform(1000, 9000, (8, 3))
    counts = np.array([2047, 256, 300])
    windows = {
        f"Book {book}, part {part}/2048/0": [float(nats[book, part]), int(counts[part])]
        for book in range(8)
        for part in range(3)
    }
    windows |= {key.replace("/2048/", "/1024/"): [9.0, 1] for key in windows}
    scores = {"by_length": [{"length": 2048}, {"length": 1024}], "by_window": windows}
    recorder.add("perplexity", "pi", scores, data={})
    perplexity = metrics.perplexity(recorder.results().records("perplexity")[0])
    assert list(perplexity) == ["2k", "1k"]
    found = perplexity["2k"]
    losses = nats.sum(axis=1) / counts.sum()
    interval = stats.ttest_1samp(losses, 0).confidence_interval()
    expected = np.exp([losses.mean(), *interval]).tolist()
    assert [found.mean, found.low, found.high] == pytest.approx(expected)
    assert found.texts == pytest.approx(np.exp(losses))


def test_one_sample_of_a_task_leaves_its_lengths_without_an_interval(recorder):
    several = score(40, n=3)
    tasks = {
        "qasper": {"0-4k": several, "4-8k": several},
        "trec": {"0-4k": several, "4-8k": score(100, 0, 1)},
    }
    scores = {
        "buckets": {"0-4k": several, "4-8k": several},
        "averages": {"Avg.": several},
        "tasks": tasks,
    }
    recorder.add("longbench_e", "pi", scores)
    tasks = {"mmlu": several, "hellaswag": score(0, 0, 1), "average": several}
    recorder.add("open_llm", "pi", {"tasks": tasks})
    results = recorder.results()
    for experiment, single in (("longbench_e", {"4-8k"}), ("open_llm", {"HellaSwag"})):
        shown = getattr(metrics, experiment)(results.records(experiment)[0])
        without = {name for name, each in shown.items() if each.low is None}
        assert without == single | {"Avg."}


def test_of_an_experiment_of_ones_own_what_has_a_mean_and_an_interval_is_a_score(recorder):
    scores = {"found": score(40), "range": {"low": 1, "high": 2}, "steps": 7}
    recorder.add("my-own", "pi", scores)
    (record,) = recorder.results().records("my-own")
    assert list(metrics.generic(record)) == ["found"]


def test_passkeys_of_one_depth_count_as_one(recorder):
    """Ten keys at each of two depths are all found or none."""
    cells = [
        {"length": 4096, "depth": depth, "mean": mean, "low": 0, "high": 1, "n": 10}
        for depth, mean in ((0.0, 1.0), (1.0, 0.0))
    ]
    recorder.add("passkey", "pi", {"by_length": cells[:1], "by_depth": cells})
    (record,) = recorder.results().records("passkey")
    share = metrics.passkeys_within(record)
    wilson = stats.binomtest(1, 2).proportion_ci(method="wilson")
    assert (share.mean, share.n) == (50, 20)
    assert [share.low, share.high] == pytest.approx([100 * wilson.low, 100 * wilson.high])


def test_passkeys_of_all_seeds_are_counted_together(recorder):
    for seed, means in enumerate(((1.0, 0.5), (1.0, 0.0))):
        scores = of_passkeys(dict(zip((4096, 16384), means)), 4)
        recorder.add("passkey", "pi", scores, seed=seed)
    (row,) = compared(recorder.results(), "passkey", True).rows
    counts = passkeys_by_length(row)
    by_length = {name: (found, asked) for name, (found, asked, _) in counts.items()}
    assert by_length == {"4k": (8, 8), "16k": (2, 8), "all": (10, 16)}
    assert counts["16k"][2].mean == 25 and counts["4k"][2].high == 100


@pytest.mark.parametrize("experiment", ["passkey", "ruler", "open_llm", "longbench_e"])
def test_the_interval_of_a_share_over_seeds_ends_at_100(recorder, experiment):
    """Student's of two seeds alone would end beyond, as it does of what is no share."""
    for seed, mean in enumerate((90.0, 98.0)):
        of = score(mean)
        parts = {name: of[name] / 100 for name in ("mean", "low", "high")}
        scores = {
            "passkey": {"by_length": [{"length": 8192, "n": 5} | parts]},
            "ruler": {"lengths": {"8192": of}, "average": of},
            "open_llm": {"tasks": {"average": of}},
            "longbench_e": {"buckets": {"8k+": of}},
        }[experiment]
        recorder.add(experiment, "pi", scores, seed=seed)
        recorder.add("my-own", "pi", {"seconds": of}, seed=seed)
    results = recorder.results()
    (row,), (seconds,) = (compared(results, name, True).rows for name in (experiment, "my-own"))
    (found,) = row.scores(getattr(metrics, experiment)).values()
    assert found.mean == pytest.approx(94) and found.high == 100
    assert seconds.scores(metrics.generic)["seconds"].high > 100
