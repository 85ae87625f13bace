"""Passkeys are counted over seeds and lengths, perplexity over texts."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import metrics
from analysis.comparison import compared
from analysis.metrics import passkeys_by_length
from tests.analysis.recorder import score


@pytest.mark.parametrize("count", [1, 3, 8])
def test_perplexity_is_that_of_the_mean_loss_over_texts(recorder, count):
    """Each book's mean loss from the record alone, by pandas, which sorts by title, too; parts are
    of one book."""
    rng = np.random.default_rng(count)
    windows = {}
    for text in range(1, count + 1):
        for begin, tokens in ((0, 2047), (256, 256), (512, 256 + text)):
            windows[f"Book {text}, part {begin}/2048/{begin}"] = [
                float(rng.normal(3, 0.5)) * tokens,
                tokens,
            ]
    windows |= {key.replace("/2048/", "/1024/"): [9.0, 1] for key in windows}
    recorder.add(
        "perplexity",
        "pi",
        {"by_length": [{"length": 2048}, {"length": 1024}], "by_window": windows},
        data={},
    )
    results = recorder.results()
    perplexity = metrics.perplexity(results.records("perplexity")[0])
    record = json.loads(next((results.folder / "mine" / "perplexity").iterdir()).read_text())
    rows = [(*key.rsplit("/", 2), *window) for key, window in record["scores"]["by_window"].items()]
    frame = pd.DataFrame(rows, columns=["text", "length", "begin", "loss", "tokens"])
    frame["text"] = frame["text"].str.split(",").str[0]
    sums = frame[frame["length"] == "2048"].groupby("text")[["loss", "tokens"]].sum()
    losses = sums["loss"] / sums["tokens"]
    assert list(perplexity) == ["2k", "1k"] and perplexity["2k"].mean == pytest.approx(
        np.exp(losses.mean())
    )
    assert perplexity["2k"].texts == pytest.approx(np.exp(losses.to_numpy()))
    if count < 5:
        assert (perplexity["2k"].low, perplexity["2k"].high) == (None, None)
    else:
        interval = stats.t.interval(0.95, count - 1, losses.mean(), stats.sem(losses))
        assert (perplexity["2k"].low, perplexity["2k"].high) == pytest.approx(
            tuple(np.exp(interval))
        )


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
    shown = metrics.longbench_e(results.records("longbench_e")[0])
    assert {name: each.low is None for name, each in shown.items()} == {
        "0-4k": False,
        "4-8k": True,
        "Avg.": True,
    }
    shown = metrics.open_llm(results.records("open_llm")[0])
    assert {name: each.low is None for name, each in shown.items()} == {
        "MMLU": False,
        "HellaSwag": True,
        "Avg.": True,
    }


def test_passkeys_of_all_seeds_are_counted_together(recorder):
    for seed, means in enumerate(((1.0, 0.5), (1.0, 0.0))):
        rows = [
            {"length": n, "n": 4} | {"mean": m, "low": 0, "high": 1}
            for n, m in zip((4096, 16384), means)
        ]
        recorder.add("passkey", "pi", {"by_length": rows}, seed=seed)
    (row,) = compared(recorder.results(), "passkey", True).rows
    counts = passkeys_by_length(row)
    by_length = {name: (found, asked) for name, (found, asked, _) in counts.items()}
    assert by_length == {"4k": (8, 8), "16k": (2, 8), "all": (10, 16)}
    assert counts["16k"][2].mean == 25 and counts["4k"][2].high == 100
