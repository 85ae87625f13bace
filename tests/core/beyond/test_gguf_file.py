"""A GGUF file is extended by keys and one small tensor; everything else in it stays as it is, to
the byte."""

import gguf
import numpy as np
import pytest

from core import rope
from core.beyond.gguf_file import TAKES_KEYS, extend_gguf
from core.errors import InputError
from core.extend import extend
from core.geometry import RopeGeometry
from core.huggingface.card import commands
from core.huggingface.rotation import skeleton
from tests.models import random_model

GEOMETRY = RopeGeometry(head_dim=32, base=10000.0, context_length=128)
TYPES = gguf.GGUFValueType


def write(file, architecture="llama", alignment=None, more=(), tensors=(), kind=None, **made):
    """A small file with a field of every type, and tensors of several, one of a length that needs
    padding."""
    writer = gguf.GGUFWriter(file, architecture, **made)
    rng = np.random.default_rng(0)
    if kind:
        writer.add_type(kind)
    if alignment:
        writer.add_custom_alignment(alignment)
    for key, value in (
        ("context_length", 128),
        ("embedding_length", 128),
        ("attention.head_count", 4),
    ):
        writer.add_uint32(f"{architecture}.{key}", value)
    writer.add_float32(f"{architecture}.rope.freq_base", 10000.0)
    for kind in TYPES:
        if kind not in (TYPES.ARRAY, TYPES.STRING):
            writer.add_key_value(f"a.{kind.name}", kind.value % 2, kind)
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "", "Ġthe", "日本"])
    writer.add_array("a.flags", [True, False, True])
    for key, value in dict(more).items():
        if isinstance(value, float):
            writer.add_float32(f"{architecture}.{key}", value)
        else:
            writer.add_array(f"{architecture}.{key}", value)
    writer.add_tensor("token_embd.weight", rng.normal(size=(7, 96)).astype(np.float16))
    quantised = gguf.quantize(
        rng.normal(size=(5, 64)).astype(np.float32), gguf.GGMLQuantizationType.Q8_0
    )
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
    fields = {
        name: (field.types, field.contents())
        for name, field in reader.fields.items()
        if name[:5] != "GGUF."
    }
    tensors = {t.name: (t.tensor_type, tuple(t.shape), t.data.tobytes()) for t in reader.tensors}
    assert all(t.data_offset % reader.alignment == 0 for t in reader.tensors)
    return fields, tensors


@pytest.mark.parametrize("method, alignment", [(rope.BASELINE, None), (rope.PROPOSED, 64)])
def test_only_what_says_the_scaling_is_added(tmp_path, method, alignment):
    source = write(tmp_path / "a.gguf", alignment=alignment)
    fields, tensors = contents(source)
    extended, held = contents(extend_gguf(source, tmp_path / "b.gguf", method, 2))
    kind, shape, data = held.pop("rope_freqs.weight")
    wanted = rope.scale(GEOMETRY, method, 2)
    assert (kind, shape) == (gguf.GGMLQuantizationType.F32, (16,))
    np.testing.assert_allclose(
        np.frombuffer(data, "<f4"), GEOMETRY.inv_freq / wanted.inv_freq, rtol=1e-7
    )
    assert held == tensors and list(held) == list(tensors) and fields.keys() <= extended.keys()
    added = {name: field for name, field in extended.items() if fields.get(name) != field}
    factor = added.pop("llama.rope.scaling.attn_factor", ([TYPES.FLOAT32], 1.0))
    assert factor == ([TYPES.FLOAT32], pytest.approx(wanted.attention_factor))
    assert added == {
        "llama.rope.scaling.type": ([TYPES.STRING], "none"),
        "llama.context_length": ([TYPES.UINT32], 256),
        "llama.rope.scaling.original_context_length": ([TYPES.UINT32], 128),
    }
    with pytest.raises(InputError, match="scaled already"):
        extend_gguf(tmp_path / "b.gguf", tmp_path / "c.gguf", method, 2)


@pytest.mark.parametrize(
    "architecture, options, method, says",
    [
        (
            "llama",
            {"tensors": ["rope_factors_long.weight"]},
            rope.PROPOSED,
            "a.gguf is scaled already",
        ),
        (
            "exaone4",
            {"more": {"attention.sliding_window": 64.0}},
            rope.PROPOSED,
            "windowed layers",
        ),
        (TAKES_KEYS[0], {}, rope.PROPOSED, TAKES_KEYS[0]),
        ("unheard-of", {}, rope.PROPOSED, "unheard-of"),
        ("llama", {"kind": "adapter"}, rope.PROPOSED, "a.gguf holds no model.*adapter"),
        ("llama", {"endianess": gguf.GGUFEndian.BIG}, rope.PROPOSED, "a.gguf is big-endian"),
        ("llama", {"more": {"a": [b"\xff"]}}, rope.PROPOSED, "cannot read .*a.gguf as GGUF"),
        ("llama", {"more": {"rope.dimension_count": [32]}}, rope.PROPOSED, "are no numbers"),
        ("llama", None, rope.PROPOSED, "a.gguf"),  # torn
    ],
)
def test_what_llama_cpp_cannot_apply_is_refused(tmp_path, architecture, options, method, says):
    source = write(tmp_path / "a.gguf", architecture, **options or {})
    source.write_bytes(source.read_bytes()[: None if options is not None else -200])
    with pytest.raises(InputError, match=says):
        extend_gguf(source, tmp_path / "b.gguf", method, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["a.gguf"]


@pytest.mark.parametrize(
    "method, options, says",
    [
        (rope.TIME_REFERENCE, {}, {"type": "linear", "factor": 2}),
        (  # llama.cpp multiplies by YaRN's own attention factor
            rope.BASELINE,
            {"beta_fast": 16.0},
            {
                "type": "yarn",
                "factor": 2,
                "original_context_length": 128,
                "yarn_beta_fast": 16,
                "yarn_beta_slow": 1,
            },
        ),
    ],
)
def test_methods_that_llama_cpp_knows_are_said_by_its_own_keys(tmp_path, method, options, says):
    source = write(tmp_path / "a.gguf", "qwen2")
    fields, tensors = contents(extend_gguf(source, tmp_path / "b.gguf", method, 2, **options))
    prefix = "qwen2.rope.scaling."
    said = {
        key.removeprefix(prefix): value
        for key, (_, value) in fields.items()
        if key.startswith(prefix)
    }
    assert said == {"original_context_length": 128} | says
    assert tensors == contents(source)[1]


@pytest.mark.parametrize(
    "architecture, method, advised",
    [
        ("Llama", rope.PROPOSED, True),
        ("Phi3", rope.BASELINE, True),
        ("Qwen2", rope.PROPOSED, False),
    ],
)
def test_what_is_advised_for_llama_cpp_can_be_done(tmp_path, architecture, method, advised):
    before = random_model(f"{architecture}Config").config
    extended = extend(skeleton(before), method, 2).config
    line = commands("D", before, extended).split("\n")[-1]
    assert line.startswith("#") and ("dprope extend" in line) == advised
    if advised:
        file = write(tmp_path / "a.gguf", architecture.lower())
        extend_gguf(file, tmp_path / "b.gguf", method, 2)
