"""A GGUF file is extended by keys and one small tensor; everything else in it stays as it is, to the byte."""

import gguf
import numpy as np
import pytest

from core import rope
from core.beyond.gguf_file import TAKES_KEYS, TAKES_LISTS, dequantised, extend_gguf
from core.errors import InputError
from core.geometry import RopeGeometry

GEOMETRY = RopeGeometry(head_dim=32, base=10000.0, context_length=128)
TYPES = gguf.GGUFValueType


def write(file, architecture="llama", alignment=None, more=(), tensors=()):
    """A small file with a field of every type, and tensors of several, one of a length that needs padding."""
    writer, rng = gguf.GGUFWriter(file, architecture), np.random.default_rng(0)
    if alignment:
        writer.add_custom_alignment(alignment)
    for key, value in (("context_length", 128), ("embedding_length", 128), ("attention.head_count", 4)):
        writer.add_uint32(f"{architecture}.{key}", value)
    writer.add_float32(f"{architecture}.rope.freq_base", 10000.0)
    for kind in TYPES:
        if kind not in (TYPES.ARRAY, TYPES.STRING):
            writer.add_key_value(f"a.{kind.name}", kind.value % 2, kind)
    writer.add_string("tokenizer.chat_template", "{% if ünïcode %}")
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "", "Ġthe", "日本"])
    writer.add_array("tokenizer.ggml.scores", [0.5, -1.25])
    writer.add_array("a.flags", [True, False, True])
    for key, value in dict(more).items():
        add = writer.add_string if isinstance(value, str) else writer.add_float32
        add(f"{architecture}.{key}", value)
    writer.add_tensor("token_embd.weight", rng.normal(size=(7, 96)).astype(np.float16))
    quantised = gguf.quantize(rng.normal(size=(5, 64)).astype(np.float32), gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("blk.0.attn_q.weight", quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("output_norm.weight", rng.normal(size=3).astype(np.float32))
    for name in tensors:
        writer.add_tensor(name, np.ones(16, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def contents(file):
    """(fields with their types, tensors with their types, shapes and bytes)"""
    reader = gguf.GGUFReader(file)
    fields = {name: (field.types, field.contents()) for name, field in reader.fields.items() if name[:5] != "GGUF."}
    tensors = {t.name: (t.tensor_type, tuple(t.shape), t.data.tobytes()) for t in reader.tensors}
    assert all(t.data_offset % reader.alignment == 0 for t in reader.tensors)
    return fields, tensors


@pytest.mark.parametrize("alignment", [None, 64])
@pytest.mark.parametrize("method", [rope.ORIGINAL, rope.TIME_REFERENCE, rope.BASELINE, rope.PROPOSED])
def test_only_what_says_the_scaling_is_added(tmp_path, method, alignment):
    source = write(tmp_path / "a.gguf", alignment=alignment)
    before = source.read_bytes()
    fields, tensors = contents(source)
    made, held = contents(extend_gguf(source, tmp_path / "b.gguf", method, 2))

    kind, shape, data = held.pop("rope_freqs.weight")
    wanted = rope.scale(GEOMETRY, method, 2)
    assert (kind, shape) == (gguf.GGMLQuantizationType.F32, (16,))
    np.testing.assert_allclose(np.frombuffer(data, "<f4"), GEOMETRY.inv_freq / wanted.inv_freq, rtol=1e-7)
    assert held == tensors and list(held) == list(tensors)
    said = {name: field for name, field in made.items() if fields.get(name) != field}
    temperature = said.pop("llama.rope.scaling.attn_factor", ([TYPES.FLOAT32], 1.0))
    assert temperature == ([TYPES.FLOAT32], pytest.approx(wanted.attention_factor))
    assert said == {
        "llama.rope.scaling.type": ([TYPES.STRING], "none"),
        "llama.context_length": ([TYPES.UINT32], 256),
        "llama.rope.scaling.original_context_length": ([TYPES.UINT32], 128),
    }
    assert fields.keys() <= made.keys() and source.read_bytes() == before


def test_an_extended_file_is_not_extended_again(tmp_path):
    for method in (rope.PROPOSED, rope.BASELINE, rope.TIME_REFERENCE):
        made = extend_gguf(write(tmp_path / "a.gguf"), tmp_path / f"{method}.gguf", method, 2)
        with pytest.raises(InputError, match="scaled already"):
            extend_gguf(made, tmp_path / "c.gguf", method, 2)


@pytest.mark.parametrize(
    "scaled",
    [
        {"more": {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}},
        {"more": {"rope.scaling.attn_factor": 1.2}},
        {"more": {"rope.scale_linear": 2.0}},
        {"tensors": ["rope_freqs.weight"]},
        {"tensors": ["rope_factors_long.weight"]},
    ],
)
def test_a_file_that_something_else_scaled_is_refused(tmp_path, scaled):
    with pytest.raises(InputError, match="a.gguf is scaled already"):
        extend_gguf(write(tmp_path / "a.gguf", **scaled), tmp_path / "b.gguf", rope.PROPOSED, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["a.gguf"]


@pytest.mark.parametrize(("architecture", "method"), [("exaone4", rope.PROPOSED), ("olmo2", "ntk")])
def test_layers_that_llama_cpp_would_scale_wrongly_are_refused(tmp_path, architecture, method):
    source = write(tmp_path / "a.gguf", architecture, more={"attention.sliding_window": 64.0})
    with pytest.raises(InputError, match="windowed layers"):
        extend_gguf(source, tmp_path / "b.gguf", method, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["a.gguf"]


@pytest.mark.parametrize("architecture", [*TAKES_KEYS, "unheard-of"])
def test_an_architecture_that_cannot_be_told_is_refused(tmp_path, architecture):
    with pytest.raises(InputError, match=architecture):
        extend_gguf(write(tmp_path / "a.gguf", architecture), tmp_path / "b.gguf", rope.PROPOSED, 2, n_hat=8)
    assert [file.name for file in tmp_path.iterdir()] == ["a.gguf"]


@pytest.mark.parametrize("architecture", ["qwen2", "qwen3moe", "nemotron"])
def test_methods_that_llama_cpp_knows_are_said_by_its_own_keys(tmp_path, architecture):
    source = write(tmp_path / "a.gguf", architecture)

    def said(method, **options):
        made, tensors = contents(extend_gguf(source, tmp_path / f"{method}.gguf", method, 2, **options))
        assert tensors == contents(source)[1]
        name = f"{architecture}.rope."
        return {key.removeprefix(name): value for key, (_, value) in made.items() if key.startswith(name)}

    unit = said(rope.TIME_REFERENCE)
    assert (unit["scaling.type"], unit["scaling.factor"], unit["freq_base"]) == ("linear", 2, 10000)
    rival = said(rope.BASELINE, beta_fast=16.0)
    assert (rival["scaling.type"], rival["scaling.factor"]) == ("yarn", 2)
    assert rival["scaling.original_context_length"] == 128
    assert (rival["scaling.yarn_beta_fast"], rival["scaling.yarn_beta_slow"]) == (16, 1)
    assert "scaling.attn_factor" not in rival  # llama.cpp multiplies by YaRN's own


def test_two_lists_where_the_loader_chooses_by_length(tmp_path):
    made, tensors = contents(
        extend_gguf(write(tmp_path / "a.gguf", TAKES_LISTS[0]), tmp_path / "b.gguf", rope.PROPOSED, 2)
    )
    assert tensors["rope_factors_long.weight"] == tensors["rope_factors_short.weight"]
    assert made[f"{TAKES_LISTS[0]}.rope.scaling.type"][1] == "longrope"


def test_what_is_no_whole_file_is_refused(tmp_path):
    (tmp_path / "text.gguf").write_text("no GGUF")
    (tmp_path / "torn.gguf").write_bytes(write(tmp_path / "a.gguf").read_bytes()[:-200])
    for name in ("none.gguf", "text.gguf", "torn.gguf"):
        with pytest.raises(InputError, match=name):
            extend_gguf(tmp_path / name, tmp_path / "b.gguf", rope.PROPOSED, 2)
    with pytest.raises(InputError, match="a.gguf"):
        extend_gguf(tmp_path / "a.gguf", tmp_path / "a.gguf", rope.PROPOSED, 2)


def test_an_interruption_leaves_nothing(tmp_path, monkeypatch):
    source = write(tmp_path / "a.gguf")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(gguf.GGUFWriter, "write_tensor_data", stop)
    with pytest.raises(KeyboardInterrupt):
        extend_gguf(source, tmp_path / "b.gguf", rope.PROPOSED, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["a.gguf"]


def test_the_same_model_in_float32(tmp_path):
    source = write(tmp_path / "a.gguf")
    fields, tensors = contents(source)
    made, held = contents(dequantised(source, tmp_path / "b.gguf"))
    assert {name: value for name, value in made.items() if name != "general.file_type"} == fields
    for tensor in gguf.GGUFReader(source).tensors:
        kind, shape, data = held[tensor.name]
        assert (kind, shape) == (gguf.GGMLQuantizationType.F32, tensors[tensor.name][1])
        plain = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        assert data == plain.tobytes()
