"""A rehearsal: a model of the same layout that is made on the spot, the suite's own steps, a kill and going on."""

import dataclasses
import os

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from core.errors import InputError
from experiments import base_models, suites
from experiments.beyond import rehearsal, rehearse
from experiments.kit import load_model
from experiments.kit.pool import Chain
from experiments.suites import measure
from experiments.suites.commands import Suite, merged
from experiments.training import checkpoint

SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "vocab_size": 600}


def small(name):
    preset = base_models.get(f"{name}-rehearsal")
    return dataclasses.replace(preset, architecture={**preset.architecture, **SMALL})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return rehearsal.make(small("llama2-7b"), tmp_path_factory.mktemp("rehearsal") / "model", layers=2)


def test_the_model_is_laid_out_as_llama2_on_the_hub(made):
    loaded = AutoModelForCausalLM.from_pretrained(made)
    config, preset = loaded.config, base_models.get("llama2-7b")
    assert config.model_type == "llama" and config.num_hidden_layers == 2 and loaded.dtype == torch.float16
    assert load_model.config_geometry(config) == dataclasses.replace(preset.geometry, head_dim=16)
    tokenizer = AutoTokenizer.from_pretrained(made)
    assert len(tokenizer) == SMALL["vocab_size"]
    for text in ("The grass is green.", "  two spaces\n\nλ → 字"):
        ids = tokenizer(text).input_ids
        assert ids.count(tokenizer.bos_token_id) == 1 and ids[0] == tokenizer.bos_token_id
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


@pytest.mark.parametrize("name", ["llama2-7b", "llama2-13b"])
def test_the_commands_are_the_suites_own(name, tmp_path):
    """The same experiments on the same models, with other sizes; in brief one model of each kind."""

    def chains(which, **given):
        suite = Suite(which, base_models.get(which), tmp_path, tmp_path / "results", **given)
        return merged(measure.of_parts(suites.find(name), suite))

    def experiments(found):
        return {chain.name: [command[0] for command in chain.commands] for chain in found}

    real, rehearsed = chains(name), chains(f"{name}-rehearsal", instead=rehearse.smaller(tmp_path, on_gpu=False))
    assert experiments(rehearsed) == experiments(real)
    assert not any(word == name for chain in rehearsed for command in chain.commands for word in command)
    longest = {command[command.index("--lengths") + 1] for chain in rehearsed for command in chain.commands
               if "--lengths" in command}  # fmt: skip
    assert max(map(int, longest)) <= 1024
    brief = rehearse.brief(rehearsed)
    assert {(chain.name.startswith("clex"), chain.trains) for chain in brief} == {(False, 0), (False, 1), (True, 1)}
    for chain in brief:
        assert len(chain.commands) == (len(experiments(real)[chain.name]) if chain.trains else 1)
    widths = base_models.get(name).architecture
    same = {
        key: value
        for key, value in base_models.get(f"{name}-rehearsal").architecture.items()
        if key != "num_hidden_layers"
    }
    assert same == {key: value for key, value in widths.items() if key != "num_hidden_layers"}


def test_a_fine_tune_is_killed_at_its_first_checkpoint_and_called_again(tmp_path):
    """The third call finds it done."""
    chain = Chain("run", [["tests.experiments.beyond.goes_on", "--output", str(tmp_path / "run")]], trains=1)
    assert rehearse.resume(chain, tmp_path / "logs") is True
    assert (tmp_path / "logs" / "run.log").read_text() == "went on from 1\n"
    assert rehearse.resume(chain, tmp_path / "logs") is False


def test_a_fine_tune_that_begins_anew_after_a_kill_is_found(tmp_path, monkeypatch):
    def begins_anew(command, log, until):
        manifest = tmp_path / "run.unfinished" / "checkpoint-1" / checkpoint.MANIFEST
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text("{}")
        os.utime(manifest, ns=(0, next(times)))
        return until()

    times = iter((1, 2))
    monkeypatch.setattr(rehearse, "_train", begins_anew)
    chain = Chain("run", [["experiments.finetune", "--output", str(tmp_path / "run")]], trains=1)
    with pytest.raises(InputError, match="did not go on from .*checkpoint-1"):
        rehearse.resume(chain, tmp_path / "logs")
