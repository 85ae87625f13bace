"""Each key of each JSON file of a checkpoint, with what does not belong there: it is refused in a
sentence, or changes nothing that its identity does not say."""

import shutil
from functools import partial

import pytest

from core.errors import InputError
from core.extend import extend_checkpoint
from core.rope import PROPOSED, TIME_REFERENCE
from experiments.kit.model import resolve
from tests.changes import answer, changes
from tests.files import edit, read, write
from tests.models import byte_tokenizer, random_model

INDEX = "model.safetensors.index.json"
YARN = {
    "rope_type": "yarn",
    "rope_theta": 1e4,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}
GENERATION = {"eos_token_id": 2, "max_length": 128, "do_sample": False, "temperature": 0.5}
SPECIAL = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": "<pad>"}


def evaluated(folder):
    """What a record says of a checkpoint, and what an evaluation reads of it beside the weights."""
    base = resolve(str(folder), as_it_is=True)
    said = base.identity, base.stops, base.extension
    return said, (base.stated_length, base.tokenizer("a text").input_ids)


def extended(folder):
    """What it says of an extension before, and the RoPE of its extension."""
    said = read(folder / "config.json").get("rope_extension")
    export = extend_checkpoint(folder, folder.parent / "out", TIME_REFERENCE, 2)
    content = read(export / "config.json")
    shutil.rmtree(export)
    return said, (content["rope_parameters"], content["max_position_embeddings"])


USES = {
    "config.json": extended,
    INDEX: extended,
    "generation_config.json": evaluated,
    "tokenizer_config.json": evaluated,
    "special_tokens_map.json": evaluated,
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """An export in shards, whose configuration states RoPE once."""
    root = tmp_path_factory.mktemp("schema")
    plain = root / "plain"
    model = random_model(num_hidden_layers=1, rope_parameters=YARN)
    model.save_pretrained(plain, max_shard_size="60KB")
    byte_tokenizer().save_pretrained(plain)
    write(plain / "generation_config.json", GENERATION)
    write(plain / "special_tokens_map.json", SPECIAL)
    folder = extend_checkpoint(plain, root / "model", PROPOSED, 2)
    config = read(folder / "config.json")
    for older in ("rope_scaling", "rope_theta"):
        del config[older]
    config |= {"eos_token_id": [2], "max_length": 20}
    write(folder / "config.json", config)
    return folder


@pytest.fixture
def folder(source, tmp_path):
    return shutil.copytree(source, tmp_path / "model")


@pytest.mark.parametrize("name", USES)
def test_a_value_that_does_not_belong_is_refused_or_changes_no_number(folder, name):
    use = USES[name]
    said, numbers = use(folder)
    for at, kind, content in changes(read(folder / name)):
        if kind in ("infinity", "object"):  # no JSON here, and refused like a list
            continue
        write(folder / name, content)
        found = answer(partial(use, folder))
        if not isinstance(found, str):
            now_said, now = found
            assert now_said != said or now == numbers, (at, kind)


@pytest.mark.parametrize(
    "name, key, value",
    [
        ("config.json", "transformers_weights", 5),
        ("config.json", "return_dict", False),
        ("config.json", "num_hidden_layers", 10**20),
        ("config.json", "num_hidden_layers", "1"),
        ("config.json", "max_position_embeddings", True),
        ("config.json", "model_max_length", "64"),
        ("config.json", "seq_length", 64.0),
        ("generation_config.json", "max_length", "64"),
        ("generation_config.json", "max_length", True),
        ("generation_config.json", "max_new_tokens", "64"),
        ("config.json", "rope_parameters", {"rope_type": "yarn", "factor": 1e308}),
        ("config.json", "rope_parameters", {"rope_type": "linear", "factor": 0}),
        ("config.json", "rope_parameters", {"rope_type": "longrope", "long_factor": [0.0] * 8}),
        ("config.json", "text_config", {"architectures": 5}),
        ("generation_config.json", "eos_token_id", [2, True]),
        ("generation_config.json", "eos_token_id", -7),
        ("generation_config.json", "eos_token_id", 10**20),
        ("generation_config.json", "eos_token_id", "abc"),
        ("generation_config.json", "eos_token_id", {"a": 1}),
        ("generation_config.json", "cache_implementation", 5),
        ("tokenizer_config.json", "model_max_length", "64"),
        ("tokenizer_config.json", "model_max_length", True),
        ("tokenizer_config.json", "model_max_length", -1),
        ("tokenizer_config.json", "model_max_length", 64.5),
        ("special_tokens_map.json", "eos_token", {"content": 5}),
        (INDEX, "weight_map", {}),
    ],
)
def test_the_sentence_names_file_and_key(folder, name, key, value):
    edit(folder / name, **{key: value})
    with pytest.raises(InputError, match=f"{key}.* in .*{name} is "):
        USES[name](folder)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("tokenizer_config.json", "padding_side", "64"),
        ("tokenizer_config.json", "extra_special_tokens", True),
        ("tokenizer_config.json", "added_tokens_decoder", [2, 2]),
        ("generation_config.json", "cache_implementation", "x"),
    ],
)
def test_nothing_is_exported_that_transformers_does_not_load(folder, name, key, value):
    edit(folder / name, **{key: value})
    with pytest.raises(InputError, match=f"cannot load .*{name}"):
        extended(folder)
    assert not (folder.parent / "out").exists()
