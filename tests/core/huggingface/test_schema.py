"""Each key of each JSON file of a checkpoint, with what does not belong there: it is refused in a
sentence, or changes nothing that its identity does not say."""

import json
import shutil

import pytest
import torch

from core.errors import InputError
from core.extend import extend_checkpoint
from core.rope import PROPOSED, TIME_REFERENCE
from experiments.kit.checkpoint import Checkpoint
from tests.models import byte_tokenizer, random_model

INDEX = "model.safetensors.index.json"
FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    INDEX,
)
VALUES = ("null", '"word"', "[]", "{}", "NaN", "1e999", str(10**20), "removed")
ANOTHER = "@"  # stands for the value
YARN = {
    "rope_type": "yarn",
    "rope_theta": 1e4,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}
GENERATION = {"eos_token_id": 2, "max_length": 128, "do_sample": False, "temperature": 0.5}
SPECIAL = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": "<pad>"}


def keys(content, outer=()):
    for key, value in content.items():
        yield *outer, key
        if isinstance(value, dict):
            yield from keys(value, (*outer, key))


def changed(content, path, value):
    """The JSON of the content with another value of one key."""
    content = json.loads(json.dumps(content))
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    if value == "removed":
        del inner[path[-1]]
    else:
        inner[path[-1]] = ANOTHER
    return json.dumps(content).replace(json.dumps(ANOTHER), value)


def evaluated(folder):
    """What a record says of a checkpoint, and the numbers that it computes."""
    base = Checkpoint(str(folder), as_it_is=True)
    said = base.provenance, base.stops, base.extension
    ids = base.tokenizer("a text").input_ids
    with torch.inference_mode():
        logits = base.load()(torch.tensor([ids])).logits
    return said, (base.stated_length, ids, logits.tolist())


def extended(folder):
    """What it says of an extension before, and the RoPE of its extension."""
    said = json.loads((folder / "config.json").read_text()).get("rope_extension")
    export = extend_checkpoint(folder, folder.parent / "out", TIME_REFERENCE, 2)
    content = json.loads((export / "config.json").read_text())
    shutil.rmtree(export)
    return said, (content["rope_parameters"], content["max_position_embeddings"])


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """An export in shards, whose configuration states RoPE once."""
    root = tmp_path_factory.mktemp("schema")
    plain = root / "plain"
    model = random_model(num_hidden_layers=1, rope_parameters=YARN)
    model.save_pretrained(plain, max_shard_size="60KB")
    byte_tokenizer().save_pretrained(plain)
    (plain / "generation_config.json").write_text(json.dumps(GENERATION))
    (plain / "special_tokens_map.json").write_text(json.dumps(SPECIAL))
    folder = extend_checkpoint(plain, root / "model", PROPOSED, 2)
    config = json.loads((folder / "config.json").read_text())
    for older in ("rope_scaling", "rope_theta"):
        del config[older]
    config |= {"eos_token_id": [2], "transformers_weights": INDEX, "max_length": 20}
    (folder / "config.json").write_text(json.dumps(config))
    return folder, {use: use(folder) for use in (evaluated, extended)}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", FILES)
def test_a_value_that_does_not_belong_is_refused_or_changes_no_number(
    source, tmp_path, name, value
):
    whole, found = source
    folder = shutil.copytree(whole, tmp_path / whole.name)
    content = json.loads((folder / name).read_text())
    for path in keys(content):
        (folder / name).write_text(changed(content, path, value))
        for use, (said, numbers) in found.items():
            try:
                now_said, now = use(folder)
                assert now_said != said or now == numbers, path
            except InputError as error:
                assert "\n" not in str(error), path


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("config.json", "transformers_weights", 5),
        ("config.json", "rope_extension", []),
        ("config.json", "return_dict", False),
        ("config.json", "num_hidden_layers", 10**20),
        ("config.json", "rope_parameters", {"rope_type": "yarn", "factor": 1e308}),
        ("config.json", "text_config", {"architectures": 5}),
        ("config.json", "is_causal", "word"),
        ("config.json", "sliding_window", [4]),
        ("generation_config.json", "eos_token_id", [2, True]),
        ("generation_config.json", "eos_token_id", -7),
        ("generation_config.json", "cache_implementation", 5),
        ("tokenizer_config.json", "model_max_length", "word"),
        ("special_tokens_map.json", "eos_token", {"content": 5}),
        (INDEX, "weight_map", {}),
    ],
)
def test_the_sentence_names_file_and_key(source, tmp_path, name, key, value):
    folder = shutil.copytree(source[0], tmp_path / "model")
    content = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(content | {key: value}))
    for use in (evaluated, extended):
        with pytest.raises(InputError, match=f"{key}.* in .*{name} is ") as error:
            use(folder)
        assert "\n" not in str(error.value)
