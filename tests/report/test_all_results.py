"""Every score as a line."""

import io

import pandas as pd

from report import all_results
from tests.analysis.recorder import Recorder, on_texts


def test_what_is_not_comparable_is_of_another_set(tmp_path):
    """Else a program would take the mean of whole texts and of their beginnings."""
    recorder = Recorder(tmp_path, factors=[])
    for tokens, methods in ((None, ["pi"]), (16385, ["pi", "yarn"])):
        for method in methods:
            record = on_texts({8192: {"A": 1.0}}, tokens=tokens, comparable=["data", "tokens"])
            recorder.add("perplexity", method, **record)
    lines = pd.read_csv(io.StringIO(all_results.table(recorder.results().folder)))
    assert lines[["method", "set"]].to_numpy().tolist() == [["pi", 1], ["yarn", 1], ["pi", 2]]
