"""Training losses beside YaRN's: of the same sequences, and of whole records alone."""

import contextlib

import pytest

from analysis.beyond import training
from core.errors import InputError


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, None),
        ({"losses": [3.0, float("nan")]}, "a number in it is NaN"),
        ({"losses": [3.0]}, "different numbers of samples"),
        ({"data_sha256": None}, "does not say 'data_sha256'"),
    ],
)
def test_only_whole_records_of_the_same_sequences_are_compared(recorder, change, says):
    run = {"seed": 0, "length": 16384, "data_sha256": "a", "losses": [3.0, 2.5]}
    others = (
        {"data_sha256": "b"},
        {"seed": 1},
        {"length": 8192},
    )  # other sequences, or none beyond L
    records = [
        ("yarn", run),
        ("pi", run | {"losses": [3.5, 2.75]} | change),
        *(("dprope", run | each) for each in others),
    ]
    for method, fields in records:
        record = recorder.add("finetune", method)
        record.update({name: value for name, value in fields.items() if value is not None})
    with pytest.raises(InputError, match=says) if says else contextlib.nullcontext():
        (((setting, seed), gap),) = training.gaps(recorder.results()).items()
        assert (setting.method, seed, gap.tolist()) == ("pi", 0, [0.5, 0.25])
