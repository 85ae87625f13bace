"""The model card of an export: true of it, readable by the hub's own reader, and the licence
stays."""

import re

import pytest
from huggingface_hub import ModelCard
from transformers import AutoModelForCausalLM

from core import rope
from core.extend import export, extend, extend_checkpoint
from core.huggingface.card import BASES, FILE
from tests.models import checkpoint

THEIRS = """---
license: other
license_name: mine
license_link: LICENSE
language: [de, no]
model-index:
- name: measured of the base alone
---
# The base
"""


@pytest.fixture
def source(tmp_path):
    """As the hub's cache has it."""
    folder = checkpoint(tmp_path / "models--someone--base/snapshots" / ("1" * 40))
    (folder / FILE).write_text(THEIRS)
    return folder


def rows(card):
    return dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", card, re.MULTILINE))


def test_a_card_keeps_the_licence_and_says_what_was_done(source, tmp_path):
    once = extend_checkpoint(source, tmp_path / "once", rope.PROPOSED, 2, n_hat=8)
    card = ModelCard.load(once / FILE)
    assert card.data.to_dict() == {
        "license": "other",
        "license_name": "mine",
        "license_link": "LICENSE",
        "base_model": "someone/base",
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
    }
    assert (once / BASES).read_text() == THEIRS
    shown = rows(card.text)
    assert shown["base model"].startswith("someone/base,") and "L = 128 " in shown["base model"]
    assert "256 tokens, s = 2" in shown["extended to"]
    assert shown["method"] == "`dprope`, `n_hat = 8`"
    assert "unchanged" in shown["weights"]
    assert "vllm serve someone/base --hf-overrides" in card.text
    twice = ModelCard.load(
        extend_checkpoint(once, tmp_path / "twice", rope.TIME_REFERENCE, 4) / FILE
    )
    assert (
        twice.data.license_name == "mine" and "512 tokens, s = 4" in rows(twice.text)["extended to"]
    )
    assert "longrope" not in twice.text
    assert (tmp_path / "twice" / BASES).read_text() == THEIRS  # not the first export's card


@pytest.mark.parametrize("metadata", ["license: mit", "license: [a", "- a"])
def test_a_model_in_memory_and_a_card_that_cannot_be_read(source, tmp_path, metadata):
    (source / FILE).write_text(f"---\n{metadata}\n---\n")
    model = extend(AutoModelForCausalLM.from_pretrained(source), rope.PROPOSED, 2)
    card = ModelCard.load(export(model, tmp_path / "export") / FILE)
    assert card.data.base_model == "someone/base" and "in memory" in rows(card.text)["weights"]
    assert "--hf-overrides" not in card.text  # its weights may have been trained
    extend(model, rope.BASELINE, 2)  # another export of the same model
    again = ModelCard.load(export(model, tmp_path / "again") / FILE)
    assert again.data.base_model == "someone/base"
    assert rows(again.text)["base model"] == rows(card.text)["base model"]
    assert card.data.to_dict().get("license") == ("mit" if "mit" in metadata else None)
