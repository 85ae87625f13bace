"""A checkpoint extended on disk: what is copied, what is rewritten, and what each kind of reader makes of it."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from core import rope
from core.errors import InputError
from core.extend import export, extend, extend_checkpoint
from core.huggingface.embedding import config_geometry
from core.rope import scale
from tests.models import byte_tokenizer, checkpoint, random_model

ARCHITECTURES = {
    "LlamaConfig": {},
    "MistralConfig": {},
    "MixtralConfig": {"num_local_experts": 2},  # its head_dim is None
    "Phi3Config": {"partial_rotary_factor": 0.5},
    "GPTNeoXConfig": {},  # its keys have other names in transformers 4
    "Gemma3TextConfig": {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]},
}
UNTRAINED = [name for name, method in rope.METHODS.items() if method.ready]


def read(directory, name="config.json"):
    return json.loads((directory / name).read_text())


def edit(directory, name="config.json", **changes):
    stated = read(directory, name) if (directory / name).exists() else {}
    (directory / name).write_text(json.dumps(stated | changes))


@pytest.fixture
def source(tmp_path):
    """Two shards, with tensors that fit no model, and what else lies in a checkpoint."""
    directory = tmp_path / "source"
    directory.mkdir()
    random_model().config.save_pretrained(directory)
    byte_tokenizer().save_pretrained(directory)
    shards = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for name, shard in zip("ab", shards):
        save_file({name: torch.arange(5000)}, directory / shard)
    weights = {"metadata": {}, "weight_map": dict(zip(("a", "b"), shards))}
    (directory / "model.safetensors.index.json").write_text(json.dumps(weights))
    (directory / "LICENSE").write_text("do as you please")
    (directory / "tokenizer.model").write_bytes(b"\x00\x01")
    (directory / "original").mkdir()
    (directory / "original" / "params.json").write_text("{}")
    edit(directory, architectures=["LlamaForCausalLM"], of_my_own=[1, 2])
    edit(directory, "generation_config.json", max_length=128, temperature=0.5)
    return directory


REWRITTEN = {"config.json", "generation_config.json", "tokenizer_config.json"}


def test_all_but_the_configuration_comes_along_byte_for_byte_and_weights_are_not_read(source, tmp_path):
    made = extend_checkpoint(source, tmp_path / "made", rope.PROPOSED, 2)
    files = {file.relative_to(source) for file in source.rglob("*") if file.is_file()}
    found = {file.relative_to(made) for file in made.rglob("*") if file.is_file()}
    assert found - files == {Path("README.md")} and files <= found
    for file in files:
        same = (made / file).read_bytes() == (source / file).read_bytes()
        assert same != (str(file) in REWRITTEN), file
        assert (made / file).stat().st_ino != (source / file).stat().st_ino
    before, after = read(source), read(made)
    assert [key for key in after if key in before] == list(before)
    assert {key for key in before if after[key] != before[key]} == {"max_position_embeddings", "rope_parameters"}
    assert sorted(os.listdir(tmp_path)) == ["made", "source"]


def test_lengths_and_the_tokenizers_class_are_what_readers_need(source, tmp_path):
    edit(source, "tokenizer_config.json", extra_special_tokens=["<mine>"])
    edit(source, max_sequence_length=128, max_length=20)
    made = extend_checkpoint(source, tmp_path / "made", rope.PROPOSED, 2)
    assert read(made, "generation_config.json") == {"max_length": 256, "temperature": 0.5}
    tokenizer = read(made, "tokenizer_config.json")
    assert (tokenizer["model_max_length"], tokenizer["tokenizer_class"]) == (256, "PreTrainedTokenizerFast")
    assert isinstance(tokenizer.get("extra_special_tokens", {}), dict)  # transformers 4 takes no list there
    assert (read(made)["max_sequence_length"], read(made)["max_length"]) == (256, 20)
    loaded = AutoTokenizer.from_pretrained(made)
    assert "<mine>" in loaded.all_special_tokens and loaded.model_max_length == 256
    assert loaded("some text").input_ids == byte_tokenizer()("some text").input_ids
    edit(source, "tokenizer_config.json", model_max_length=10**30)
    assert (
        read(extend_checkpoint(source, tmp_path / "more", rope.PROPOSED, 2), "tokenizer_config.json")[
            "model_max_length"
        ]
        == 10**30
    )


def test_links_share_weights_and_nothing_else(source, tmp_path, monkeypatch):
    made = extend_checkpoint(source, tmp_path / "made", rope.PROPOSED, 2, link=True)
    for file in source.iterdir():
        linked = (made / file.name).stat().st_ino == file.stat().st_ino
        assert linked == (file.suffix == ".safetensors"), file

    def elsewhere(*_):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", elsewhere)
    with pytest.raises(InputError, match="cannot link"):
        extend_checkpoint(source, tmp_path / "other", rope.PROPOSED, 2, link=True)
    assert sorted(os.listdir(tmp_path)) == ["made", "source"]


def test_the_hubs_cache_of_symbolic_links_is_copied_and_linked(source, tmp_path):
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for file in source.iterdir():
        (snapshot / file.name).symlink_to(file)
    for link in (False, True):
        made = extend_checkpoint(snapshot, tmp_path / f"made-{link}", rope.PROPOSED, 2, link=link)
        assert not any(file.is_symlink() for file in made.iterdir())
        shard = "model-00001-of-00002.safetensors"
        assert (made / shard).read_bytes() == (source / shard).read_bytes()


def by_new_keys(stated):
    """(inverse frequencies, attention factor) that transformers makes of ``rope_parameters`` alone."""
    config = AutoConfig.for_model(**{key: value for key, value in stated.items() if key not in OLD})
    layers = "full_attention" if "full_attention" in config.rope_parameters else None
    parameters = config.rope_parameters[layers] if layers else config.rope_parameters
    if parameters["rope_type"] == "default":
        dim = int(config.head_dim * parameters.get("partial_rotary_factor", 1)) if hasattr(config, "head_dim") else 4
        return parameters["rope_theta"] ** -(np.arange(0, dim, 2) / dim), 1.0
    found = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, device="cpu", layer_type=layers)
    return found[0].double().numpy(), found[1]


OLD = ("rope_scaling", "rope_theta", "rope_local_base_freq", "rotary_emb_base", "rotary_pct", "partial_rotary_factor")


def by_old_keys(stated):
    """The same of the keys of transformers 4, by its formulas."""
    base = stated.get("rotary_emb_base", stated.get("rope_theta"))
    share = stated.get("rotary_pct", stated.get("partial_rotary_factor", 1.0))
    heads = stated["num_attention_heads"]
    d = int((stated.get("head_dim") or stated["hidden_size"] // heads) * share)
    plain = base ** -(np.arange(0, d, 2) / d)
    scaling = stated["rope_scaling"] or {"rope_type": "default"}
    longer = stated["max_position_embeddings"]
    match scaling.get("rope_type", scaling.get("type")):
        case "default":
            return plain, 1.0
        case "linear":
            return plain / scaling["factor"], 1.0
        case "longrope":
            if "attention_factor" in scaling:
                attention_factor = scaling["attention_factor"]
            else:
                original = stated["original_max_position_embeddings"]
                attention_factor = np.sqrt(1 + np.log(longer / original) / np.log(original))
            return plain / np.array(scaling["long_factor"]), attention_factor
        case "llama3":
            turns = plain * scaling["original_max_position_embeddings"] / (2 * np.pi)
            low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
            smooth = np.clip((turns - low) / (high - low), 0, 1)
            return plain / scaling["factor"] * (1 - smooth) + plain * smooth, 1.0
    original = scaling["original_max_position_embeddings"]
    factor = longer / original

    def index(rotations):
        return d * np.log(original / (rotations * 2 * np.pi)) / (2 * np.log(base))

    low, high = max(np.floor(index(scaling["beta_fast"])), 0), min(np.ceil(index(scaling["beta_slow"])), d - 1)
    ramp = np.clip((np.arange(d // 2) - low) / (high - low), 0, 1)
    return plain / factor * ramp + plain * (1 - ramp), 0.1 * np.log(factor) + 1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("method", UNTRAINED)
def test_either_generation_of_keys_says_the_scaling(tmp_path, architecture, method):
    source = tmp_path / "source"
    random_model(architecture, **ARCHITECTURES[architecture]).config.save_pretrained(source)
    (source / "pytorch_model.bin").write_bytes(b"weights")  # pickled weights are copied like any others
    expected = scale(config_geometry(AutoConfig.from_pretrained(source)), method, 2)
    stated = read(extend_checkpoint(source, tmp_path / "made", method, 2))
    close = {"rtol": 1e-3} if architecture == "Phi3Config" else {"rtol": 1e-6}  # whose attention factor is recomputed
    for found in (by_new_keys(stated), by_old_keys(stated)):
        np.testing.assert_allclose(found[0], expected.inv_freq, rtol=2e-6)
        np.testing.assert_allclose(found[1], expected.attention_factor, **close)
    assert stated["max_position_embeddings"] == 256


@pytest.mark.parametrize(
    ("architecture", "method", "key", "wanted"),
    [
        (
            "OlmoConfig",
            rope.TIME_REFERENCE,
            "rope_scaling",
            {"type": "linear", "factor": 2.0},
        ),  # its validator takes two keys
        ("Olmo2Config", rope.TIME_REFERENCE, "rope_scaling", {"type": "linear", "factor": 2.0}),
        ("GPTNeoXJapaneseConfig", rope.TIME_REFERENCE, "rotary_emb_base", 10000),
    ],
)
def test_what_transformers_4_reads_of_some_architectures(tmp_path, architecture, method, key, wanted):
    random_model(architecture).save_pretrained(tmp_path / "source")
    assert read(extend_checkpoint(tmp_path / "source", tmp_path / "made", method, 2))[key] == wanted


def test_the_stock_type_is_written_where_it_says_it_all(source, tmp_path):
    types = {
        (rope.BASELINE, ()): "yarn",
        (rope.BASELINE, (("beta_fast", 16.0),)): "yarn",
        (rope.BASELINE, (("ramp", "rotations"),)): "longrope",
        (rope.BASELINE, (("attention_factor", 1.0),)): "longrope",
        (rope.TIME_REFERENCE, ()): "linear",
        (rope.ORIGINAL, ()): "default",
        (rope.PROPOSED, ()): "longrope",
    }
    for i, ((method, options), kind) in enumerate(types.items()):
        stated = read(extend_checkpoint(source, tmp_path / str(i), method, 2, **dict(options)))
        assert stated["rope_parameters"]["rope_type"] == kind, (method, options)
        assert (stated["rope_scaling"] or {"rope_type": "default"})["rope_type"] == kind
    uneven = read(extend_checkpoint(source, tmp_path / "uneven", rope.BASELINE, 1.37))  # L' is no multiple of L
    assert uneven["rope_parameters"]["rope_type"] == "longrope"


@pytest.mark.parametrize("attention_factor", [1.0, 1.05, 1.2])
def test_readers_that_choose_the_attention_factor_themselves_choose_ours(tmp_path, attention_factor):
    source = tmp_path / "source"
    random_model(max_position_embeddings=8192).config.save_pretrained(source)
    (source / "pytorch_model.bin").write_bytes(b"weights")
    made = extend_checkpoint(source, tmp_path / "made", rope.PROPOSED, 2, attention_factor=attention_factor)
    stated = read(made)["rope_scaling"]
    original = stated["original_max_position_embeddings"]
    recomputed = np.sqrt(1 + np.log(16384 / original) / np.log(original))
    assert recomputed == pytest.approx(attention_factor, rel=1e-4)
    assert stated["factor"] == pytest.approx(16384 / original)
    assert stated["attention_factor"] == stated.get("short_mscale", recomputed) == stated.get("long_mscale", recomputed)


def test_extending_again_starts_from_pre_training(source, tmp_path):
    once = extend_checkpoint(source, tmp_path / "once", rope.BASELINE, 4)
    for method in UNTRAINED:
        between = extend_checkpoint(source, tmp_path / f"between-{method}", method, 2)
        again = extend_checkpoint(between, tmp_path / f"again-{method}", rope.BASELINE, 4)
        assert read(again) == read(once)
        assert config_geometry(AutoConfig.from_pretrained(between)) == config_geometry(
            AutoConfig.from_pretrained(source)
        )


def test_a_configuration_that_says_something_else_is_never_put_in_place(source, tmp_path, monkeypatch):
    monkeypatch.setattr("core.huggingface.configuration.write", lambda *_, **__: None)
    with pytest.raises(InputError, match="cannot say how"):
        extend_checkpoint(source, tmp_path / "made", rope.PROPOSED, 2)
    assert os.listdir(tmp_path) == ["source"]


def test_what_cannot_be_extended_is_refused(source, tmp_path):
    def refused(says, method=rope.PROPOSED, output=tmp_path / "made", start=source):
        with pytest.raises(InputError, match=says) as error:
            extend_checkpoint(start, output, method, 2)
        assert "\n" not in str(error.value)
        assert sorted(os.listdir(tmp_path)) == names

    names = ["source"]
    refused("exists already", output=source.parent)
    refused("lies within", output=source / "made")
    refused("holds no config.json", start=tmp_path / "nothing")
    refused("export it", method=next(name for name, method in rope.METHODS.items() if method.start))
    stated = read(source)
    (source / "config.json").write_text(json.dumps({key: stated[key] for key in stated if not key.startswith("max_")}))
    refused("does not state the context length")
    scaled = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
    edit(source, max_position_embeddings=128, rope_parameters=scaled)
    refused("scaled already .*'linear'")
    edit(source, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, hidden_size="wide")
    refused("config.json")
    edit(source, hidden_size=64)
    (source / "model-00002-of-00002.safetensors").unlink()
    refused("holds no model-00002-of-00002.safetensors")
    (source / "model-00001-of-00002.safetensors").unlink()
    refused("holds no weights")
    random_model("GPT2Config", n_embd=64, n_layer=2, n_head=4).save_pretrained(tmp_path / "gpt2")
    names = ["gpt2", "source"]
    refused("no RoPE parameters", start=tmp_path / "gpt2")


def test_an_attention_factor_that_phi3_cannot_say_is_refused_and_leaves_the_model_alone():
    model = random_model("Phi3Config", **ARCHITECTURES["Phi3Config"])
    before = model.config.to_dict()
    with pytest.raises(InputError, match="at least 1"):
        extend(model, rope.PROPOSED, 2, attention_factor=0.9)
    assert model.config.to_dict() == before


def test_the_name_of_a_model_extended_in_memory_loads_nothing_until_it_is_exported(tmp_path):
    """An adapter takes it for the name of its base."""
    model = AutoModelForCausalLM.from_pretrained(checkpoint(tmp_path / "source"))
    extend(extend(model, rope.TIME_REFERENCE, 2), rope.PROPOSED, 2)
    with pytest.raises(OSError):
        AutoConfig.from_pretrained(model.name_or_path)
    export(model, tmp_path / "made")
    assert config_geometry(AutoConfig.from_pretrained(model.name_or_path)).context_length == 128
    assert AutoConfig.from_pretrained(model.name_or_path).max_position_embeddings == 256


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model-00002-of-00002.safetensors", b"cut short"),
        ("model-00001-of-00002.safetensors", b""),
        ("tokenizer_config.json", b"{"),
        ("generation_config.json", b"[1, 2"),
        ("model.safetensors.index.json", b'{"metadata": {}}'),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_written(source, tmp_path, monkeypatch, name, content):
    monkeypatch.setattr("core.files.new", lambda _: pytest.fail("something was written"))
    (source / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        extend_checkpoint(source, tmp_path / "made", rope.PROPOSED, 2)


@pytest.mark.parametrize(("before", "after"), [(20, 20), (127, 127), (128, 256), (256, 256), (1000, 1000)])
def test_a_limit_of_generation_below_pre_trainings_length_was_chosen(source, tmp_path, before, after):
    edit(source, "generation_config.json", max_length=before)
    made = extend_checkpoint(source, tmp_path / "made", rope.PROPOSED, 2)
    assert read(made, "generation_config.json")["max_length"] == after


def test_an_export_states_its_method_and_the_next_one_replaces_it(source, tmp_path):
    once = extend_checkpoint(source, tmp_path / "once", rope.PROPOSED, 2, n_hat=np.int64(8))
    twice = extend_checkpoint(once, tmp_path / "twice", rope.TIME_REFERENCE, 4)
    stated = [
        {key: read(made)["rope_extension"][key] for key in ("method", "options", "factor")} for made in (once, twice)
    ]
    assert stated == [
        {"method": rope.PROPOSED, "options": {"n_hat": 8}, "factor": 2.0},
        {"method": rope.TIME_REFERENCE, "options": {}, "factor": 4.0},
    ]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"factor": 4.0}, "does not agree"),
        ({"factor": "x"}, "does not agree"),
        ({"context_length": 64}, "does not agree"),
        ({"context_length": 64, "factor": 4.0}, "rotates otherwise"),
        ({"rope_theta": 5000.0}, "rotates otherwise"),
        ({"method": rope.TIME_REFERENCE}, "rotates otherwise"),
        ({"options": {"attention_factor": 1.0}}, "rotates otherwise"),
    ],
)
def test_an_export_that_is_not_what_it_states_is_refused(source, tmp_path, changes, says):
    made = extend_checkpoint(source, tmp_path / "made", rope.BASELINE, 2)
    edit(made, rope_extension=read(made)["rope_extension"] | changes)
    with pytest.raises(InputError, match=says):
        extend_checkpoint(made, tmp_path / "again", rope.PROPOSED, 2)
    assert sorted(os.listdir(tmp_path)) == ["made", "source"]
