"""Model families: what is extended rightly, what is refused, and what an extended model survives."""

import copy
import csv
import io
import warnings

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM

from core.errors import InputError
from core.extend import export, extend, extend_checkpoint
from core.geometry import RopeGeometry
from core.rope import ORIGINAL, PROPOSED, TIME_REFERENCE, scale
from tests.models import random_model
from tools import families

COMMITTED = {row["type"]: row["outcome"] for row in csv.DictReader(io.StringIO(families.TABLE.read_text()))}
TOKENS = families.TOKENS


BUILT = [each for each in COMMITTED if not COMMITTED[each].startswith((families.NO_ROPE, families.NOT_BUILT))]


@pytest.mark.filterwarnings("ignore:.* are scaled though they need not be")
@pytest.mark.parametrize("model_type", BUILT)
def test_every_type_is_right_or_refused_as_the_table_says(model_type):
    """All methods by `python -m tools.families`, which writes the table; one of them here."""
    assert families.outcome(model_type, [PROPOSED]) == COMMITTED[model_type]


def test_the_table_knows_every_type_and_no_refusal_is_long():
    assert list(COMMITTED) == families.TYPES
    assert not [outcome for outcome in COMMITTED.values() if outcome.startswith("wrong") or len(outcome) > 300]


@pytest.mark.parametrize("model_type", ["exaone4", "exaone_moe", "afmoe", "llama4_text", "flint", "cohere2", "beam"])
def test_rope_in_windowed_layers_alone_is_left_alone(model_type):
    """No rotated pair of tokens is ever further apart than the window, as a change of far tokens shows."""
    model = families.random_model(model_type)
    before = families.logits(model)
    with pytest.raises(InputError, match=r"rotates only in|not for those of type full_attention"):
        extend(model, TIME_REFERENCE, 2)
    assert torch.equal(families.logits(model), before)
    assert model.config.get_text_config().max_position_embeddings == families.LENGTH


def test_windows_that_are_never_left_are_warned_of():
    model = random_model("Phi3Config", sliding_window=64)  # of L = 128
    with pytest.warns(UserWarning, match="all layers of Phi3ForCausalLM see 64 tokens"):
        extend(model, TIME_REFERENCE, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        extend(random_model("Phi3Config", sliding_window=None), TIME_REFERENCE, 2)


def granite(layer_rope_theta, **rope):
    config = families.config("granite_swa")
    config.layer_rope_theta = layer_rope_theta
    config.rope_parameters = {"rope_type": "default", "rope_theta": 10000.0, **rope}
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config).eval()


def test_a_base_that_differs_from_the_configurations_is_refused():
    model = granite([1e6, 0.0, 1e6, 0.0])
    with pytest.raises(InputError, match="base"):
        extend(model, PROPOSED, 2)
    assert model.config.max_position_embeddings == families.LENGTH


def test_what_a_checkpoint_cannot_say_is_not_exported(tmp_path):
    """The windowed layers' other base would be scaled when the export is loaded."""
    model = extend(granite([1e4, 1e6, 1e4, 1e6]), PROPOSED, 2)
    assert torch.equal(model.model.rotary_embs[1].inv_freq, granite([1e6]).model.rotary_embs[0].inv_freq)
    with pytest.raises(InputError, match="a checkpoint cannot say"):
        export(model, tmp_path / "made")
    assert not any(tmp_path.iterdir())


def test_one_base_for_some_layers_is_extended_from_that_base(tmp_path):
    model = granite([1e6, 0.0, 1e6, 0.0], rope_theta=1e6)
    model.save_pretrained(tmp_path / "source")
    extend(model, PROPOSED, 2)
    theta = scale(RopeGeometry(16, 1e6, families.LENGTH), PROPOSED, 2).inv_freq
    assert torch.allclose(model.model.rotary_embs[0].inv_freq.double(), torch.from_numpy(theta))
    made = extend_checkpoint(tmp_path / "source", tmp_path / "made", PROPOSED, 2)
    loaded = AutoModelForCausalLM.from_pretrained(made).eval()
    assert torch.equal(families.logits(loaded), families.logits(model))


def test_the_language_models_rotary_is_extended_not_the_vision_towers(tmp_path):
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
    text = {**sizes, "intermediate_size": 48, "vocab_size": 99, "max_position_embeddings": families.LENGTH}
    text["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}
    vision = {"depth": 1, "embed_dim": 16, "num_heads": 2, "hidden_size": 32}
    config = transformers.Qwen2VLConfig(text_config=text, vision_config=vision)
    torch.manual_seed(0)
    model = transformers.Qwen2VLForConditionalGeneration(config).eval()
    tower = next(module for name, module in model.named_modules() if "visual" in name and hasattr(module, "inv_freq"))
    seen = tower.inv_freq.clone()
    model.save_pretrained(tmp_path / "source")
    extend(model, TIME_REFERENCE, 2)
    assert torch.equal(tower.inv_freq, seen)
    made = extend_checkpoint(tmp_path / "source", tmp_path / "made", TIME_REFERENCE, 2)
    loaded = transformers.Qwen2VLForConditionalGeneration.from_pretrained(made).eval()
    assert torch.equal(families.logits(loaded), families.logits(model))
    scaled = 1e4 ** -(torch.arange(0, 16, 2) / 16) / 2
    assert torch.allclose(loaded.model.language_model.rotary_emb.inv_freq, scaled)


def test_alibi_is_no_rotation():
    with pytest.raises(InputError, match="none of its layers rotates"):
        extend(random_model("FalconConfig", alibi=True), TIME_REFERENCE, 2)


@pytest.mark.parametrize("model_type", ["gemma4_text", "lfm3"])
def test_rope_of_another_kind_is_not_called_scaled(model_type):
    with pytest.raises(InputError, match="'proportional'") as error:
        extend(families.random_model(model_type), TIME_REFERENCE, 2)
    assert "already" not in str(error.value)


def saved_and_loaded(model, folder):
    torch.save(model, folder / "model.pt")
    return torch.load(folder / "model.pt", weights_only=False)


def initialised(model, folder):
    weights = copy.deepcopy(model.state_dict())
    for module in model.modules():
        module._is_hf_initialized = False
    model.init_weights()
    model.load_state_dict(weights)
    return model


def enlarged(model, folder):
    model.resize_token_embeddings(400)
    return model


def recomputing(model, folder):
    model.activation_checkpointing_enable()
    model.train()(TOKENS).logits.sum().backward()
    return model.eval()


@pytest.mark.parametrize(
    "change",
    [saved_and_loaded, initialised, enlarged, recomputing, lambda m, _: copy.deepcopy(m), lambda m, _: m.to("cpu")],
    ids=["torch.save", "init_weights", "resize_token_embeddings", "gradient checkpointing", "deepcopy", "device"],
)
@pytest.mark.parametrize("architecture", ["LlamaConfig", "Gemma3TextConfig"])
def test_an_extended_model_stays_extended(tmp_path, change, architecture):
    mixed = {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 32}
    model = random_model(architecture, **(mixed if architecture.startswith("Gemma") else {}))
    plain = families.logits(model)
    expected = families.logits(extend(model, PROPOSED, 2))
    assert not torch.equal(plain, expected)
    changed = families.logits(change(model, tmp_path))[:, : expected.shape[-1]]
    assert torch.allclose(changed, expected, atol=1e-6)
    again = families.logits(extend(model, ORIGINAL, 2))[:, : expected.shape[-1]]
    assert torch.allclose(again, plain, atol=1e-6)
