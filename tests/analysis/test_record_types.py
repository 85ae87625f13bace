"""A field of a record that is missing or of another type is named with its file, in one sentence."""

import functools
import json

import pytest

from analysis import record_types
from core.errors import InputError
from experiments.kit.records import RESULTS

RECORD = next((RESULTS / "tiny" / "ruler").glob("dprope_*_seed=0.json")).read_text()


@pytest.mark.parametrize("content", [RECORD[:-9], "[]", "\x00", '{"scores": NaN}', '{"scores": 1e999}'])
def test_what_is_no_record_is_refused(tmp_path, content):
    file = tmp_path / "broken.json"
    file.write_text(content)
    with pytest.raises(InputError, match="broken.json"):
        record_types.read(file, "ruler")


@pytest.mark.parametrize("key", ["method", "factor", "options", "scores"])
def test_a_missing_field_is_named_where_it_is_read(tmp_path, key):
    file = tmp_path / "broken.json"
    file.write_text(json.dumps({name: value for name, value in json.loads(RECORD).items() if name != key}))
    with pytest.raises(InputError, match=rf"broken.json .*'{key}'"):
        record_types.read(file, "ruler")[key]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("factor", -1),
        ("options.n_hat", "x"),
        ("training.seed", True),
        ("scores.average.mean", "x"),
        ("scores.average.low", 101),
    ],
)
def test_a_field_of_another_type_is_named_with_its_file(tmp_path, field, value):
    record = json.loads(RECORD)
    *above, key = field.split(".")
    functools.reduce(lambda node, part: node[part], above, record)[key] = value
    file = tmp_path / "broken.json"
    file.write_text(json.dumps(record))
    with pytest.raises(InputError, match=rf"broken.json .*{(above or [key])[0]}") as refused:
        record_types.read(file, "ruler")
    assert key in str(refused.value) and "\n" not in str(refused.value)
