"""The model as it is, on every benchmark that has a record of it."""

from analysis.beyond import unextended
from tests.analysis.made import score


def test_the_model_as_it_is_comes_from_what_no_method_extended_first(made):
    def keys(length, mean):
        return {"by_length": [{"length": length, "n": 4, "mean": mean, "low": 0, "high": 1}]}

    made.add("passkey", "original", keys(8192, 0.5), factor=4)
    made.add("passkey", "original", keys(16384, 0.25), factor=2)
    made.add("passkey", None, keys(8192, 1.0), factor=1)
    made.add("passkey", "pi", keys(4096, 0.0))
    made.add("my_benchmark", "original", {"accuracy": score(12, n=30)})
    lines = {line.name: line for line in unextended.lines(made.results())}
    assert {name: line.score.mean for name, line in lines.items()} == {
        "Passkeys, 8k": 100,
        "Passkeys, 16k": 25,
        "my_benchmark, accuracy": 12,
    }
    assert lines["Passkeys, 8k"].amount == "4 prompts" and lines["my_benchmark, accuracy"].amount == "30 samples"
