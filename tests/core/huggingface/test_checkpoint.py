"""A checkpoint extended on disk: what is copied, what is rewritten, and what each kind of reader
makes of it."""

import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoTokenizer

from core import rope
from core.errors import InputError
from core.extend import check_extension, extend, extend_checkpoint
from core.huggingface.rotation import skeleton
from experiments.kit.model import resolve
from tests import files
from tests.models import byte_tokenizer, random_model

ARCHITECTURES = {
    "LlamaConfig": {},
    "MixtralConfig": {
        "num_local_experts": 2
    },  # its head_dim is None, and its files have older names of weights
    "Phi3Config": {"partial_rotary_factor": 0.5},
    "GPTNeoXConfig": {},  # its keys have other names in transformers 4
    "Gemma3TextConfig": {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]},
}
KINDS = {  # the type that says a method in full
    rope.TIME_REFERENCE: "linear",
    rope.BASELINE: "yarn",
    rope.PROPOSED: "longrope",
    "hardclip": "longrope",  # some of whose factors are 1e30
    "ntk": "default",
    "llama3": "llama3",
}
INDEX = "model.safetensors.index.json"
SHARDS = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
REWRITTEN = {"config.json", "generation_config.json", "tokenizer_config.json"}


def read(directory, name="config.json"):
    return files.read(directory / name)


def edit(directory, name="config.json", **changes):
    files.edit(directory / name, **changes)


def longer(source, method=rope.PROPOSED):
    """Extended by s = 2 into the folder beside it."""
    return extend_checkpoint(source, source.parent / "extended", method, 2)


def saved(directory, architecture, **options):
    random_model(architecture, **options).save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two shards, a tokenizer and a licence, in a file system's and in the hub's form."""
    directory = tmp_path_factory.mktemp("whole") / "source"
    random_model(num_hidden_layers=1).save_pretrained(directory, max_shard_size="200KB")
    byte_tokenizer().save_pretrained(directory)
    (directory / "LICENSE").write_text("do as you please")
    edit(directory, of_my_own=[1, 2])
    edit(directory, "generation_config.json", max_length=128, temperature=0.5)
    return directory


@pytest.fixture(scope="module")
def extended(whole):
    return longer(whole, rope.BASELINE)


@pytest.fixture
def source(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "source")


def test_all_but_the_configuration_comes_along_byte_for_byte(whole, extended):
    names = set(os.listdir(whole))
    assert set(os.listdir(extended)) == names | {"README.md"}
    for name in names:
        assert ((extended / name).read_bytes() == (whole / name).read_bytes()) == (
            name not in REWRITTEN
        ), name
        assert (extended / name).stat().st_ino != (whole / name).stat().st_ino
    before = read(whole)
    after = read(extended)
    assert [key for key in after if key in before] == list(before)
    assert {key for key in before if after[key] != before[key]} == {
        "max_position_embeddings",
        "rope_parameters",
    }
    assert sorted(os.listdir(whole.parent)) == ["extended", "source"]


def test_lengths_and_the_tokenizers_class_are_what_readers_need(source):
    edit(source, "tokenizer_config.json", extra_special_tokens=["<mine>"])
    edit(source, max_sequence_length=128, max_seq_len=127, max_length=20)  # a lesser one was chosen
    extended = longer(source)
    generation = read(extended, "generation_config.json")
    assert generation.items() >= {"max_length": 256, "temperature": 0.5}.items()
    tokenizer = read(extended, "tokenizer_config.json")
    assert tokenizer["model_max_length"] == 256
    assert tokenizer["tokenizer_class"] == "PreTrainedTokenizerFast"
    # transformers 4 takes no list there
    assert isinstance(tokenizer.get("extra_special_tokens", {}), dict)
    lengths = {"max_sequence_length": 256, "max_seq_len": 127, "max_length": 20}
    assert read(extended).items() >= lengths.items()
    loaded = AutoTokenizer.from_pretrained(extended)
    assert "<mine>" in loaded.all_special_tokens
    assert loaded("some text").input_ids == byte_tokenizer()("some text").input_ids


@pytest.mark.parametrize("shared", [False, True])
def test_the_hubs_symbolic_links_are_copied_as_files(source, tmp_path, shared):
    """Also those of a cache whose repositories share their files."""
    snapshot = tmp_path / "hub/models--a--b/snapshots/1"
    snapshot.mkdir(parents=True)
    blobs = tmp_path / "hub/models--a--b/blobs"
    source = source.rename(tmp_path / "hub/blobs" if shared else blobs)
    if shared:
        (source / ".huggingface-shared-blobs").write_text("1")
        blobs.mkdir()
    for file in source.glob("[!.]*"):
        if shared:
            (blobs / file.name).symlink_to(Path("../../blobs") / file.name)
        (snapshot / file.name).symlink_to(Path("../../blobs") / file.name)
    extended = extend_checkpoint(snapshot, tmp_path / "extended", rope.PROPOSED, 2)
    assert not any((extended / file.name).is_symlink() for file in source.glob("[!.]*"))
    assert all((extended / name).read_bytes() == (source / name).read_bytes() for name in SHARDS)


def test_a_link_to_the_blobs_of_a_cache_is_followed_in_its_snapshots_alone(source, tmp_path):
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs/notice").write_text("a secret")
    (tmp_path / "mine").mkdir()
    source = source.rename(tmp_path / "mine/source")
    (source / "NOTICE").symlink_to("../../blobs/notice")
    with pytest.raises(InputError, match="outside the checkpoint"):
        longer(source)


@pytest.mark.parametrize(
    "name",
    [
        "../other.safetensors",
        "{tmp}/other.safetensors",
        "pipe.safetensors",
        "absent.safetensors",
        "\ud800\0",
        "x" * 10**6,
    ],
)
def test_a_file_that_is_named_as_weights_lies_below_the_checkpoint(source, tmp_path, name):
    os.mkfifo(source / "pipe.safetensors")
    shutil.copyfile(source / SHARDS[0], tmp_path / "other.safetensors")
    name = name.format(tmp=tmp_path)
    edit(source, INDEX, weight_map=read(source, INDEX)["weight_map"] | {"more": name})
    with pytest.raises(InputError, match=INDEX) as error:
        longer(source)
    assert len(str(error.value)) < 1000 and not (tmp_path / "extended").exists()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_keys_of_transformers_4_say_the_scaling_also_of_a_checkpoint_extended_again(
    tmp_path, architecture
):
    """Transformers itself reads them where the newer ones are missing."""
    source = saved(tmp_path / "source", architecture, **ARCHITECTURES[architecture])
    for method in KINDS if architecture == "LlamaConfig" else (rope.BASELINE, rope.PROPOSED):
        source = extend_checkpoint(source, tmp_path / method, method, 2)
        content = read(source)
        if architecture == "LlamaConfig":
            assert content["rope_parameters"]["rope_type"] == KINDS[method]
        del content["rope_parameters"]
        older = tmp_path / f"{method}-older"
        files.write(older / "config.json", content)
        model = skeleton(AutoConfig.from_pretrained(older))
        assert (
            check_extension(model).items()
            >= {"method": method, "options": {}, "factor": 2.0}.items()
        )
        assert model.config.max_position_embeddings == 256


def test_an_attention_factor_that_phi3_cannot_say_is_refused_and_leaves_the_model_alone():
    model = random_model("Phi3Config", **ARCHITECTURES["Phi3Config"])
    before = model.config.to_dict()
    with pytest.raises(InputError, match="at least 1"):
        extend(model, rope.PROPOSED, 2, attention_factor=0.9)
    assert model.config.to_dict() == before


OTHERS = (
    "params.json",
    "consolidated.safetensors",
    "training_args.bin",
    "optimizer.pt",
    "tool.py",
    "wandb/a",
    ".env",
    "original/params.json",
    ".tokenizer.json",
    ".cache/a.json",
)


def test_what_no_loader_needs_is_left_out_and_said(source, extended):
    for name in OTHERS:
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text("secret")
    edit(source, auto_map={"AutoModelForCausalLM": "tool.Own"})
    with pytest.warns(UserWarning) as warned:
        target = longer(source, rope.BASELINE)
    said = " ".join(str(warning.message) for warning in warned)
    assert (
        all(name.split("/")[0] in said for name in OTHERS if name[0] != ".") and "auto_map" in said
    )
    assert {file.name: file.read_bytes() for file in target.iterdir() if file.suffix != ".md"} == {
        file.name: file.read_bytes() for file in extended.iterdir() if file.suffix != ".md"
    }


def rewritten(change, name="model.safetensors", save=save_file):
    """The same weights in one file but for what changes."""

    def write(source):
        tensors = {}
        for shard in SHARDS:
            tensors |= load_file(source / shard)
        for file in (INDEX, *SHARDS):
            (source / file).unlink()
        change(tensors)
        save(tensors, source / name)

    return write


def pickled(change):
    return rewritten(change, "pytorch_model.bin", torch.save)


def unchanged(tensors):
    pass


def wrapped(tensors):
    """A tensor has the name that an adapter gives it."""
    for name in [name for name in tensors if "q_proj" in name]:
        tensors[name.replace("q_proj", "q_proj.base_layer")] = tensors.pop(name)


def with_biases(tensors):
    name = "model.layers.0.self_attn.q_proj"
    tensors[f"{name}.bias"] = torch.ones(len(tensors[f"{name}.weight"]))


def tied(source):
    edit(source, tie_word_embeddings=True)


def cut_pickle(source):
    pickled(unchanged)(source)
    file = source / "pytorch_model.bin"
    os.truncate(file, file.stat().st_size - 100)


def moved(source):
    """An index that names a tensor in the other file."""
    weights = read(source, INDEX)["weight_map"]
    other = SHARDS[weights["model.norm.weight"] == SHARDS[0]]
    edit(source, INDEX, weight_map=weights | {"model.norm.weight": other})


DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
BAD = {
    "no config.json": (lambda source: (source / "config.json").unlink(), "config.json"),
    "dynamic": (
        lambda source: edit(source, rope_parameters=DYNAMIC),
        "'dynamic' cannot be extended",
    ),
    "own code": (
        lambda source: edit(source, auto_map={"": ""}, architectures=["Own"]),
        "names code of its own",
    ),
    "a cut shard": (
        lambda source: os.truncate(source / SHARDS[1], 5000),
        f"cannot read .*{SHARDS[1]}",
    ),
    "an index that lies": (moved, "names model.norm.weight in"),
    "shards alone": (lambda source: (source / INDEX).unlink(), "no weights that a loader opens"),
    "an adapter": (
        lambda source: edit(source, "adapter_config.json", peft_type="LORA"),
        "holds an adapter",
    ),
    "a cut pickle": (cut_pickle, "cannot read .*pytorch_model.bin.*git lfs pull"),
    "no tensor": (rewritten(lambda tensors: tensors.clear()), "missing"),
    "LoRA inside": (
        rewritten(wrapped),
        "1 missing, for example model.layers.0.self_attn.q_proj.weight",
    ),
    "another size": (lambda source: edit(source, intermediate_size=80), "3 mismatched"),
    "biases that are not loaded": (
        rewritten(with_biases),
        "1 unexpected, for example .*q_proj.bias",
    ),
    "a composite model without a head": (
        lambda source: edit(source, model_type="llava", architectures=["LlavaModel"]),
        "no causal language model",
    ),
    "tied, and another head": (tied, "tie_word_embeddings"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_whole_checkpoint_is_refused_in_a_line(source, tmp_path, kind):
    change, says = BAD[kind]
    change(source)
    with pytest.raises(InputError, match=says) as error:
        longer(source)
    assert "\n" not in str(error.value) and os.listdir(tmp_path) == ["source"]
    if kind not in ("dynamic", "own code"):  # which are evaluated as they are
        with pytest.raises(InputError):
            resolve(str(source)).load()


@pytest.mark.parametrize("make", [Path.mkdir, lambda file: file.symlink_to("absent")])
def test_what_has_the_name_of_a_tokenizers_file_is_one(source, tmp_path, make):
    (source / "tokenizer.json").unlink()
    make(source / "tokenizer.json")
    with pytest.raises(InputError, match="is no file|cannot read|cannot load"):
        extend_checkpoint(source, tmp_path / "extended", rope.PROPOSED, 2)
    assert os.listdir(tmp_path) == ["source"]


def test_whether_quantised_weights_fit_is_left_to_their_loader(source):
    edit(source, quantization_config={"quant_method": "gptq", "bits": 4})
    packed = rewritten(lambda tensors: tensors.update(packed=tensors.pop("lm_head.weight")))
    packed(source)
    with pytest.warns(UserWarning, match="their own loader"):
        longer(source)


def test_an_adapter_inside_quantised_weights_is_seen(source):
    edit(source, quantization_config={"quant_method": "gptq", "bits": 4})
    rewritten(wrapped)(source)
    with pytest.raises(InputError, match="q_proj.base_layer"):
        longer(source)


@pytest.mark.parametrize("kind", ["head", "no head", "pickled", "float32"])
def test_a_head_that_is_the_embedding_again_is_tied(tmp_path, kind):
    model = random_model(num_hidden_layers=1, tie_word_embeddings=True, dtype=torch.bfloat16)
    model.to(torch.bfloat16).save_pretrained(tmp_path / "source")
    file = tmp_path / "source/model.safetensors"
    tensors = load_file(file)
    if kind != "no head":
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    if kind == "float32":
        tensors["lm_head.weight"] = tensors["lm_head.weight"].float()
    save_file(tensors, file)
    if kind == "pickled":
        file.unlink()
        torch.save(tensors, tmp_path / "source/pytorch_model.bin")
    extended = extend_checkpoint(tmp_path / "source", tmp_path / "out", rope.BASELINE, 2)
    loaded = resolve(str(extended)).load()
    assert loaded.lm_head.weight is loaded.model.embed_tokens.weight


SCALED = {"attention_factor": 1.0, "rope_type": "linear"}


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"factor": 4.0}, "states 512 tokens"),
        ({"scaled": SCALED | {"frequencies": [1.0, 0.5]}}, "inverse frequencies must be"),
        ({"method": rope.TIME_REFERENCE}, "rotates otherwise"),
        ({"method": rope.PROPOSED, "options": {"n_hat": 3}}, "rope_extension in .* cannot be read"),
    ],
)
def test_an_export_that_is_not_what_it_states_is_refused(extended, tmp_path, changes, says):
    altered = shutil.copytree(extended, tmp_path / "altered")
    edit(altered, rope_extension=read(altered)["rope_extension"] | changes)
    with pytest.raises(InputError, match=says):
        extend_checkpoint(altered, tmp_path / "again", rope.PROPOSED, 2)
