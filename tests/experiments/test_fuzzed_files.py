"""Configurations and journals that were edited or cut: refused in one sentence, or read right; never a traceback."""

import functools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig

from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.kit import journal
from experiments.kit.base_model import BaseModel

CONFIG = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=260,
    max_position_embeddings=64, architectures=["LlamaForCausalLM"],
).to_dict()  # fmt: skip
DEEP = functools.reduce(lambda inner, _: {"a": inner}, range(300), 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([10**400, DEEP]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
# What the geometry comes from is broken more often than the rest.
GEOMETRY = [
    "model_type",
    "rope_parameters",
    "head_dim",
    "hidden_size",
    "num_attention_heads",
    "max_position_embeddings",
]
KEYS = st.sampled_from(sorted(CONFIG)) | st.sampled_from(GEOMETRY)
ROPE_KEYS = ("rope_type", "rope_theta", "factor", "partial_rotary_factor", "full_attention")
ROPE = st.fixed_dictionaries({}, optional=dict.fromkeys(ROPE_KEYS, JSON))


def geometry_of(config, folder):
    """The geometry of a config.json, or None where it is refused."""
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    try:
        return BaseModel(str(folder)).geometry
    except InputError as refused:
        assert "\n" not in str(refused)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every example of a property writes to the same one."""
    return tmp_path_factory.mktemp("fuzzed")


@settings(max_examples=25, derandomize=True, database=None)
@given(KEYS, JSON | ROPE, st.booleans())
def test_a_configuration_with_one_entry_changed(folder, key, value, gone):
    changed = {name: old for name, old in CONFIG.items() if name != key} | ({} if gone else {key: value})
    geometry = geometry_of(changed, folder)
    assert geometry is None or isinstance(geometry, RopeGeometry)
    if geometry and type(changed.get("max_position_embeddings")) is int:
        assert geometry.context_length == changed["max_position_embeddings"]


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "3", "[" * 100_000, "{}"])
def test_a_file_that_is_no_configuration(tmp_path, text):
    assert geometry_of(text, tmp_path) is None


@settings(max_examples=20, derandomize=True, database=None)
@given(st.dictionaries(st.text(min_size=1, max_size=5), JSON, min_size=1, max_size=4), st.data())
def test_a_journal_that_was_cut_has_its_whole_lines_and_an_edited_one_is_named(folder, entries, data):
    file = folder / "run.jsonl"
    file.unlink(missing_ok=True)
    with journal.Journal(file) as whole:
        for key, value in entries.items():
            whole.add(key, value)
    written = file.read_bytes()
    cut = data.draw(st.integers(0, len(written)))
    file.write_bytes(written[:cut])
    with journal.Journal(file) as resumed:
        assert list(resumed.entries) == list(entries)[: written[:cut].count(b"\n")]
    first, rest = written.split(b"\n", 1)
    file.write_bytes(first[: data.draw(st.integers(0, len(first) - 1))] + b"\n" + rest)
    with pytest.raises(InputError, match=r"line 1 of .*run\.jsonl"):
        journal.Journal(file)
