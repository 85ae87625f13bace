"""The command that extends: a name on the hub is a checkpoint too, and only what is none is loaded."""

import json

import pytest
from transformers import AutoConfig

from tests.models import checkpoint


@pytest.fixture
def model(tmp_path):
    return checkpoint(tmp_path / "model", dtype="bfloat16")


@pytest.fixture
def loads_nothing(monkeypatch):
    monkeypatch.setattr("experiments.kit.base_model.BaseModel.load", lambda *_: pytest.fail("weights were loaded"))


def test_a_name_on_the_hub_is_the_directory_that_it_was_downloaded_to(
    call, model, tmp_path, monkeypatch, loads_nothing
):
    asked = []

    checked = AutoConfig.from_pretrained(model)

    def download(name, ignore_patterns):
        asked.append((name, "*.bin" in ignore_patterns))
        return str(model)

    monkeypatch.setattr("experiments.kit.base_model.snapshot_download", download)
    monkeypatch.setattr("experiments.kit.base_model.BaseModel.source", "owner/name")
    monkeypatch.setattr("experiments.kit.base_model.BaseModel.config", checked)
    status, _, err = call("extend", "--model", "owner/name", "--output", tmp_path / "made")
    assert status == 0, err
    assert (tmp_path / "made" / "tokenizer.json").exists() and asked == [("owner/name", True)]
    (model / "model.safetensors").rename(model / "pytorch_model.bin")  # a repository with pickled weights only
    status, _, err = call("extend", "--model", "owner/name", "--output", tmp_path / "pickled")
    assert status == 0, err
    assert (tmp_path / "pickled" / "pytorch_model.bin").exists() and asked[1:] == [
        ("owner/name", True),
        ("owner/name", False),
    ]


def test_what_is_no_checkpoint_is_loaded_and_exported(call, tmp_path):
    status, _, err = call("extend", "--model", "smoke", "--output", tmp_path / "made", "--dtype", "bfloat16")
    assert status == 0, err
    stated = json.loads((tmp_path / "made" / "config.json").read_text())
    assert stated["dtype"] == "bfloat16" and stated["rope_scaling"]["rope_type"] == "longrope"
    assert (tmp_path / "made" / "tokenizer.json").exists()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("smoke", ["--link", "--output", "{made}"]),
        ("{model}", ["--dtype", "float32", "--output", "{made}"]),
        ("{model}/no.gguf", []),
        ("{model}", ["--output", "{model}/made"]),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(call, model, tmp_path, name, arguments):
    places = {"model": model, "made": tmp_path / "made"}
    before = sorted(tmp_path.rglob("*"))
    status, _, err = call("extend", "--model", name.format(**places), *(a.format(**places) for a in arguments))
    assert status == 2 and err.startswith("error: ") and err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
