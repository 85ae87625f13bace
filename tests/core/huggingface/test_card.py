"""The model card of an export: true of it, readable by the hub's own reader, its code runs, and the licence stays."""

import re

import pytest
import torch
from huggingface_hub import ModelCard
from transformers import AutoModelForCausalLM

from core import rope
from core.extend import export, extend, extend_checkpoint
from core.huggingface.card import BASES, FILE
from tests.models import byte_tokenizer, checkpoint, random_model

THEIRS = """---
license: other
license_name: mine
license_link: LICENSE
language: [de]
model-index:
- name: measured of the base alone
---
# The base
"""


@pytest.fixture
def source(tmp_path):
    """As the hub's cache has it."""
    folder = checkpoint(tmp_path / "models--someone--base" / "snapshots" / ("1" * 40))
    (folder / FILE).write_text(THEIRS)
    (folder / "LICENSE").write_text("do as you please")
    return folder


def rows(card):
    return dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", card, re.MULTILINE))


def test_a_card_keeps_the_licence_and_says_what_was_done(source, tmp_path):
    made = extend_checkpoint(source, tmp_path / "made", rope.PROPOSED, 2, n_hat=8, notes="## More\n\nMy words.")
    card = ModelCard.load(made / FILE)
    assert card.data.to_dict() == {"license": "other", "license_name": "mine", "license_link": "LICENSE",
                                   "language": ["de"], "base_model": "someone/base", "library_name": "transformers",
                                   "pipeline_tag": "text-generation"}  # fmt: skip
    assert (made / BASES).read_text() == THEIRS and (made / "LICENSE").is_file()
    told = rows(card.text)
    assert told["base model"].startswith("someone/base,") and "L = 128 " in told["base model"]
    assert "256 tokens, s = 2" in told["extended to"] and told["method"] == "`dprope`, `n_hat = 8`"
    assert "`longrope`" in told["in `config.json`"] and "unchanged" in told["weights"]
    assert "My words." in card.text and "mine, `LICENSE`" in card.text and BASES in card.text


def test_its_python_loads_the_export(source, tmp_path, monkeypatch):
    made = extend_checkpoint(source, tmp_path / "made", rope.BASELINE, 2)
    (code,) = re.findall(r"```python\n(.*?)```", (made / FILE).read_text(), re.DOTALL)
    monkeypatch.chdir(made)
    exec(code, names := {})
    tokens = torch.arange(200)[None]
    expected = extend(AutoModelForCausalLM.from_pretrained(source), rope.BASELINE, 2)(tokens).logits
    assert torch.equal(names["model"](tokens).logits, expected) and names["tokenizer"]("a").input_ids


def test_an_export_extended_again_has_a_card_of_its_own(source, tmp_path):
    once = extend_checkpoint(source, tmp_path / "once", rope.PROPOSED, 2)
    twice = ModelCard.load(extend_checkpoint(once, tmp_path / "twice", rope.TIME_REFERENCE, 4) / FILE)
    assert twice.data.license_name == "mine" and "512 tokens, s = 4" in rows(twice.text)["extended to"]
    assert "`linear`" in twice.text and "longrope" not in twice.text


def test_a_model_in_memory(source, tmp_path):
    model = AutoModelForCausalLM.from_pretrained(source)
    card = ModelCard.load(export(extend(model, rope.PROPOSED, 2), tmp_path / "made", byte_tokenizer()) / FILE)
    assert card.data.base_model == "someone/base" and card.data.license_name == "mine"
    assert "in memory" in rows(card.text)["weights"]
    nameless = export(extend(random_model(), rope.TIME_REFERENCE, 2), tmp_path / "nameless")
    assert "base_model" not in ModelCard.load(nameless / FILE).data.to_dict()
    assert not (export(random_model(), tmp_path / "not extended") / FILE).exists()


@pytest.mark.parametrize("metadata", ["license: [a", "- a"])
def test_a_card_that_cannot_be_read_stops_no_export(source, tmp_path, metadata):
    (source / FILE).write_text(f"---\n{metadata}\n---\n")
    made = extend_checkpoint(source, tmp_path / "made", rope.PROPOSED, 2)
    assert "license" not in ModelCard.load(made / FILE).data.to_dict() and metadata in (made / BASES).read_text()
