"""A checkpoint extended on disk: what is copied, what is rewritten, and what each kind of reader makes of it."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoTokenizer

from core import rope
from core.errors import InputError
from core.extend import extend, extend_checkpoint
from core.huggingface.configuration import longrope
from core.huggingface.embedding import config_geometry
from core.rope import RopeGeometry, scale
from tests.models import GROUPED, SIZES, byte_tokenizer, random_model

ARCHITECTURES = {
    "LlamaConfig": {},
    "MixtralConfig": {"num_local_experts": 2},  # its head_dim is None
    "Phi3Config": {"partial_rotary_factor": 0.5},
    "GPTNeoXConfig": {},  # its keys have other names in transformers 4
    "Gemma3TextConfig": {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]},
}
KINDS = (rope.ORIGINAL, rope.TIME_REFERENCE, rope.BASELINE, rope.PROPOSED, "ntk", "llama3")
SHARDS = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
REWRITTEN = {"config.json", "generation_config.json", "tokenizer_config.json"}


def read(directory, name="config.json"):
    return json.loads((directory / name).read_text())


def edit(directory, name="config.json", **changes):
    content = read(directory, name) if (directory / name).exists() else {}
    (directory / name).write_text(json.dumps(content | changes))


def configured(directory, architecture, **options):
    """A checkpoint whose weights are none, which nothing reads."""
    sizes = SIZES if architecture.startswith("GPTNeoX") else GROUPED
    getattr(transformers, architecture)(**{**sizes, **options}).save_pretrained(directory)
    (directory / "pytorch_model.bin").write_bytes(b"weights")
    return directory


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two shards, with tensors that fit no model, and what else lies in a checkpoint."""
    directory = configured(tmp_path_factory.mktemp("whole") / "source", "LlamaConfig")
    (directory / "pytorch_model.bin").unlink()
    byte_tokenizer().save_pretrained(directory)
    for name, shard in zip("ab", SHARDS):
        save_file({name: torch.arange(5000)}, directory / shard)
    weights = {"metadata": {}, "weight_map": dict(zip("ab", SHARDS))}
    (directory / "model.safetensors.index.json").write_text(json.dumps(weights))
    (directory / "LICENSE").write_text("do as you please")
    (directory / "original").mkdir()
    (directory / "original" / "params.json").write_text("{}")
    edit(directory, architectures=["LlamaForCausalLM"], of_my_own=[1, 2])
    edit(directory, "generation_config.json", max_length=128, temperature=0.5)
    return directory


@pytest.fixture(scope="module")
def extended(whole):
    return extend_checkpoint(whole, whole.parent / "extended", rope.BASELINE, 2)


@pytest.fixture
def source(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "source")


def test_all_but_the_configuration_comes_along_byte_for_byte(whole, extended):
    files = {file.relative_to(whole) for file in whole.rglob("*") if file.is_file()}
    copied = {file.relative_to(extended) for file in extended.rglob("*") if file.is_file()}
    assert copied - files == {Path("README.md")} and files <= copied
    for file in files:
        same = (extended / file).read_bytes() == (whole / file).read_bytes()
        assert same != (str(file) in REWRITTEN), file
        assert (extended / file).stat().st_ino != (whole / file).stat().st_ino
    before, after = read(whole), read(extended)
    assert [key for key in after if key in before] == list(before)
    assert {key for key in before if after[key] != before[key]} == {"max_position_embeddings", "rope_parameters"}
    assert sorted(os.listdir(whole.parent)) == ["extended", "source"]


@pytest.mark.parametrize(("limit", "becomes"), [(127, 127), (128, 256)])  # a lesser one was chosen
def test_lengths_and_the_tokenizers_class_are_what_readers_need(source, tmp_path, limit, becomes):
    edit(source, "tokenizer_config.json", extra_special_tokens=["<mine>"])
    edit(source, "generation_config.json", max_length=limit)
    edit(source, max_sequence_length=limit, max_length=20)
    extended = extend_checkpoint(source, tmp_path / "extended", rope.PROPOSED, 2)
    assert read(extended, "generation_config.json") == {"max_length": becomes, "temperature": 0.5}
    tokenizer = read(extended, "tokenizer_config.json")
    assert (tokenizer["model_max_length"], tokenizer["tokenizer_class"]) == (256, "PreTrainedTokenizerFast")
    assert isinstance(tokenizer.get("extra_special_tokens", {}), dict)  # transformers 4 takes no list there
    assert (read(extended)["max_sequence_length"], read(extended)["max_length"]) == (becomes, 20)
    loaded = AutoTokenizer.from_pretrained(extended)
    assert "<mine>" in loaded.all_special_tokens and loaded.model_max_length == 256
    assert loaded("some text").input_ids == byte_tokenizer()("some text").input_ids


def test_links_share_weights_and_nothing_else_also_from_the_hubs_symbolic_links(source, tmp_path, monkeypatch):
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for file in source.iterdir():
        (snapshot / file.name).symlink_to(file)
    linked = extend_checkpoint(snapshot, tmp_path / "linked", rope.PROPOSED, 2, link=True)
    for file in filter(Path.is_file, source.iterdir()):
        assert not (linked / file.name).is_symlink()
        assert ((linked / file.name).stat().st_ino == file.stat().st_ino) == (file.suffix == ".safetensors"), file
    error = OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(InputError, match="cannot link"):
        extend_checkpoint(source, tmp_path / "other", rope.PROPOSED, 2, link=True)
    assert sorted(os.listdir(tmp_path)) == ["linked", "snapshot", "source"]


def by_old_keys(content):
    """(inverse frequencies, attention factor) that transformers 4 makes of its keys, by its formulas."""
    base = content.get("rotary_emb_base", content.get("rope_theta"))
    share = content.get("rotary_pct", content.get("partial_rotary_factor", 1.0))
    d = int((content.get("head_dim") or content["hidden_size"] // content["num_attention_heads"]) * share)
    plain = base ** -(np.arange(0, d, 2) / d)
    scaling, longer = content["rope_scaling"] or {"rope_type": "default"}, content["max_position_embeddings"]
    original = scaling.get("original_max_position_embeddings", content.get("original_max_position_embeddings"))
    match scaling.get("rope_type", scaling.get("type")):
        case "default":
            return plain, 1.0
        case "linear":
            return plain / scaling["factor"], 1.0
        case "longrope":
            recomputed = np.sqrt(1 + np.log(longer / original) / np.log(original))
            return plain / np.array(scaling["long_factor"]), scaling.get("attention_factor", recomputed)
        case "llama3":
            turns = plain * original / (2 * np.pi)
            low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
            smooth = np.clip((turns - low) / (high - low), 0, 1)
            return plain / scaling["factor"] * (1 - smooth) + plain * smooth, 1.0
    factor = longer / original

    def index(rotations):
        return d * np.log(original / (rotations * 2 * np.pi)) / (2 * np.log(base))

    low, high = max(np.floor(index(scaling["beta_fast"])), 0), min(np.ceil(index(scaling["beta_slow"])), d - 1)
    ramp = np.clip((np.arange(d // 2) - low) / (high - low), 0, 1)
    return plain / factor * ramp + plain * (1 - ramp), 0.1 * np.log(factor) + 1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_keys_of_transformers_4_say_the_scaling_also_of_a_checkpoint_extended_again(tmp_path, architecture):
    source = configured(tmp_path / "source", architecture, **ARCHITECTURES[architecture])
    geometry = config_geometry(AutoConfig.from_pretrained(source))
    close = {"rtol": 1e-3} if architecture == "Phi3Config" else {"rtol": 1e-6}  # whose attention factor is recomputed
    for method in KINDS if architecture == "LlamaConfig" else KINDS[1:4]:
        expected = scale(geometry, method, 2)
        source = extend_checkpoint(source, tmp_path / method, method, 2)
        content = read(source)
        inv_freq, attention_factor = by_old_keys(content)
        np.testing.assert_allclose(inv_freq, expected.inv_freq, rtol=2e-6)
        np.testing.assert_allclose(attention_factor, expected.attention_factor, **close)
        stated = {"method": method, "options": {}, "factor": 2.0}
        assert content["max_position_embeddings"] == 256 and stated.items() <= content["rope_extension"].items()


@pytest.mark.parametrize(
    ("architecture", "key", "wanted"),
    [
        ("OlmoConfig", "rope_scaling", {"type": "linear", "factor": 2.0}),  # its validator takes two keys
        ("GPTNeoXJapaneseConfig", "rotary_emb_base", 10000),
    ],
)
def test_what_transformers_4_reads_of_some_architectures(tmp_path, architecture, key, wanted):
    source = configured(tmp_path / "source", architecture)
    assert read(extend_checkpoint(source, tmp_path / "extended", rope.TIME_REFERENCE, 2))[key] == wanted


@pytest.mark.parametrize("attention_factor", [1.0, 1.05, 1.2])
def test_readers_that_choose_the_attention_factor_themselves_choose_ours(attention_factor):
    geometry = RopeGeometry(16, 10000.0, 8192)
    scaling = scale(geometry, rope.PROPOSED, 2, attention_factor=attention_factor)
    parameters = longrope(geometry, scaling, 16384)
    original = parameters["original_max_position_embeddings"]
    recomputed = np.sqrt(1 + np.log(16384 / original) / np.log(original))
    assert recomputed == pytest.approx(attention_factor, rel=1e-4)
    assert parameters["factor"] == pytest.approx(16384 / original)
    assert parameters.get("short_mscale", recomputed) == parameters["attention_factor"] == attention_factor


def test_a_configuration_that_says_something_else_is_never_put_in_place(source, tmp_path, monkeypatch):
    monkeypatch.setattr("core.huggingface.configuration.write", lambda *_, **__: None)
    with pytest.raises(InputError, match="cannot say how"):
        extend_checkpoint(source, tmp_path / "extended", rope.PROPOSED, 2)
    assert os.listdir(tmp_path) == ["source"]


def test_an_attention_factor_that_phi3_cannot_say_is_refused_and_leaves_the_model_alone():
    model = random_model("Phi3Config", **ARCHITECTURES["Phi3Config"])
    before = model.config.to_dict()
    with pytest.raises(InputError, match="at least 1"):
        extend(model, rope.PROPOSED, 2, attention_factor=0.9)
    assert model.config.to_dict() == before


LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
BAD = {
    "holds no config.json": lambda source: (source / "config.json").unlink(),
    "does not state the context length": lambda source: edit(source, max_position_embeddings=0),
    "scaled already .*'linear'": lambda source: edit(source, rope_parameters=LINEAR),
    "cannot read .*config.json": lambda source: edit(source, hidden_size="wide"),
    f"holds no {SHARDS[1]}": lambda source: (source / SHARDS[1]).unlink(),
    "holds no weights": lambda source: [(source / shard).unlink() for shard in SHARDS],
    f"cannot read .*{SHARDS[1]}": lambda source: (source / SHARDS[1]).write_bytes(b"cut short"),
    SHARDS[0]: lambda source: (source / SHARDS[0]).write_bytes(b""),
    "cannot read .*tokenizer_config.json": lambda source: (source / "tokenizer_config.json").write_text("{"),
    "index.json has no weight_map": lambda source: edit(source, "model.safetensors.index.json", weight_map=None),
}


@pytest.mark.parametrize("says", BAD)
def test_what_is_no_whole_checkpoint_is_refused_in_a_line(source, tmp_path, says):
    BAD[says](source)
    with pytest.raises(InputError, match=says) as error:
        extend_checkpoint(source, tmp_path / "extended", rope.PROPOSED, 2)
    assert "\n" not in str(error.value) and os.listdir(tmp_path) == ["source"]


def test_what_cannot_be_asked_of_a_checkpoint_is_refused(whole, tmp_path):
    learned = next(name for name, method in rope.METHODS.items() if method.start)
    for output, method, says in (
        (whole.parent, rope.PROPOSED, "exists already"),
        (whole / "extended", rope.PROPOSED, "lies within"),
        (tmp_path / "extended", learned, "export it"),
    ):
        with pytest.raises(InputError, match=says):
            extend_checkpoint(whole, output, method, 2)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"factor": 4.0}, "does not agree"),
        ({"factor": "x"}, "does not agree"),
        ({"context_length": 64, "factor": 4.0}, "rotates otherwise"),
        ({"rope_theta": 5000.0}, "rotates otherwise"),
        ({"method": rope.TIME_REFERENCE}, "rotates otherwise"),
        ({"options": {"attention_factor": 1.0}}, "rotates otherwise"),
    ],
)
def test_an_export_that_is_not_what_it_states_is_refused(extended, tmp_path, changes, says):
    altered = shutil.copytree(extended, tmp_path / "altered")
    edit(altered, rope_extension=read(altered)["rope_extension"] | changes)
    with pytest.raises(InputError, match=says):
        extend_checkpoint(altered, tmp_path / "again", rope.PROPOSED, 2)
