"""Every score as a line."""

import io

import pandas as pd

from report import all_results
from tests.analysis.recorder import Recorder, on_texts


def test_what_is_not_comparable_is_of_another_set(tmp_path):
    """Else a program would take the mean of whole texts and of their beginnings. What is fine-tuned
    is of the set that it is compared with."""
    recorder = Recorder(tmp_path, factors=[])
    measured = ((None, None, ["pi"]), (16385, None, ["pi", "yarn"]), (None, 0, ["pi"]))
    for tokens, seed, methods in measured:
        for method in methods:
            record = on_texts({8192: {"A": 1.0}}, tokens=tokens, comparable=["data", "tokens"])
            recorder.add("perplexity", method, **record, seed=seed)
    whole = on_texts({8192: {"A": 1.0}}, tokens=None, comparable=["data", "tokens"])
    recorder.add("perplexity", "pi", **whole, seed=0, training={"per_book": 1})
    lines = pd.read_csv(io.StringIO(all_results.table(recorder.results().folder)))
    expected = [["pi", 0, 1], ["yarn", 0, 1], ["pi", 0, 2], ["pi", 1, 2], ["pi", 2, 2]]
    assert lines[["method", "training", "set"]].to_numpy().tolist() == expected
