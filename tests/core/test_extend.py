"""Extended in memory: at a million tokens, after a cast, and what is refused."""

import copy

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForSequenceClassification

from core.errors import InputError
from core.extend import export, extend
from core.huggingface.rotation import skeleton
from core.rope import METHODS, PROPOSED, TIME_REFERENCE
from tests.models import checkpoint, random_model


def rotaries(model):
    return [module for module in model.modules() if hasattr(module, "rope_type")]


def test_the_name_of_a_model_extended_in_memory_loads_nothing_until_it_is_exported(tmp_path):
    """An adapter takes it for the name of its base."""
    model = AutoModelForCausalLM.from_pretrained(checkpoint(tmp_path / "source"))
    extend(extend(model, TIME_REFERENCE, 2), PROPOSED, 2)
    with pytest.raises(OSError):
        AutoConfig.from_pretrained(model.name_or_path)
    export(model, tmp_path / "export")
    assert AutoConfig.from_pretrained(model.name_or_path).max_position_embeddings == 256
    files = (tmp_path / "export" / name for name in ("model.safetensors", "config.json"))
    assert len({file.stat().st_mode for file in files}) == 1  # whoever reads one reads the other
    with pytest.raises(InputError, match="exists already"):
        export(model, tmp_path / "export")


@pytest.mark.parametrize(
    "stated, after", [(128, 256), (200, 256), (100, 100), (999, 999), (None, None)]
)
def test_answers_may_be_as_long_as_the_context_where_they_were(stated, after):
    """And another length is a limit that somebody chose."""
    model = random_model()
    model.generation_config.max_length = stated
    extend(model, PROPOSED, 2)
    assert model.generation_config.max_length == after
    extend(model, PROPOSED, 4)
    assert model.generation_config.max_length == (512 if after == 256 else after)


def test_a_default_dtype_changes_no_embedding():
    model = random_model()
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        extend(model, PROPOSED, 2)
    finally:
        torch.set_default_dtype(before)
    (rotary,) = rotaries(model)
    wanted = extend(random_model(), PROPOSED, 2)
    assert torch.equal(rotary.inv_freq, rotaries(wanted)[0].inv_freq)


def test_models_that_are_not_as_pre_trained_are_refused():
    moved = random_model()
    shapeless = random_model()
    empty = random_model().to("meta")
    louder = random_model()
    rotaries(moved)[0].inv_freq.mul_(0.5)
    rotaries(louder)[0].attention_scaling = 1.5
    shapeless.config.max_position_embeddings = 0
    for model, says in (
        (moved, "other inverse frequencies"),
        (louder, "another attention factor"),
        (shapeless, "max_position_embeddings"),
        (empty, "meta device"),
        ("models/tiny", "no model of transformers"),
    ):
        with pytest.raises(InputError, match=says):
            extend(model, TIME_REFERENCE, 2)


@pytest.mark.parametrize(
    "cast",
    [nn.Module.half, copy.deepcopy, lambda model: model.bfloat16().float()],
)
def test_frequencies_stay_float32_under_a_cast(cast):
    model = extend(random_model(), PROPOSED, 2)
    expected = [buffer.clone() for rotary in rotaries(model) for buffer in rotary.buffers()]
    model = cast(model)
    kept = [buffer for rotary in rotaries(model) for buffer in rotary.buffers()]
    assert all(
        a.dtype == torch.float32 and torch.equal(a, b) for a, b in zip(kept, expected, strict=True)
    )


@pytest.mark.parametrize("base", [1e4, 1e7])
def test_a_million_tokens_are_extended_by_every_method(base):
    """Which compares the frequencies of the model with those that were computed."""
    rope = {"rope_type": "default", "rope_theta": base}
    config = random_model(head_dim=128, num_hidden_layers=1, rope_parameters=rope).config
    config.max_position_embeddings = 1_010_000
    model = skeleton(config)
    for name, method in METHODS.items():
        if method.ready:
            assert extend(model, name, 4).config.max_position_embeddings == 4_040_000


class Lora(nn.Module):
    """As PEFT puts it in the place of a layer."""

    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer
        self.lora_A = nn.Linear(64, 4, bias=False)

    def forward(self, x):
        return self.base_layer(x) + self.lora_A(x).sum(-1, keepdim=True)


def adapted(model):
    attention = model.model.layers[0].self_attn
    attention.q_proj = Lora(attention.q_proj)
    return model


def untied(model):
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach() + 1)
    return model


def classifier(model):
    return LlamaForSequenceClassification(model.config).eval()


def shared(model):
    first, second, *_ = model.model.layers
    second.mlp.up_proj.weight = first.mlp.up_proj.weight
    return model


def with_config(**values):
    def change(model):
        vars(model.config).update(values)
        return model

    return change


def contradictory(model):
    vars(model.generation_config).update(do_sample=False, temperature=0.5)
    return model


OTHERS = {
    "another activation in its configuration": (with_config(hidden_act="gelu"), "mlp.act_fn"),
    "another ε in its configuration": (with_config(rms_norm_eps=0.1), "variance_epsilon 0.1"),
    "a truth that is none": (with_config(use_cache="no"), "use_cache"),
    "an id that is none": (with_config(eos_token_id="x"), "eos_token_id"),
    "defaults of generation that contradict each other": (contradictory, "temperature"),
    "two layers with one weight": (shared, "give each its own weights"),
    "LoRA inside": (adapted, "merge an adapter first"),
    "a head of another kind": (classifier, "missing, for example lm_head.weight"),
    "tied in its configuration alone": (untied, "lm_head.weight"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_model_that_a_load_would_not_bring_back_is_not_exported(tmp_path, kind):
    change, says = OTHERS[kind]
    with pytest.raises(InputError, match=says):
        export(
            extend(change(random_model(tie_word_embeddings=change is untied)), TIME_REFERENCE, 2),
            tmp_path / "x",
        )
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "of, tokenizer, says",
    [
        (lambda model: model.to("meta"), None, "on the meta device"),
        (lambda model: model, "word", "no tokenizer"),
    ],
)
def test_what_cannot_be_written_is_not_exported(tmp_path, of, tokenizer, says):
    with pytest.raises(InputError, match=says):
        export(of(random_model()), tmp_path / "x", tokenizer)
    assert not any(tmp_path.iterdir())
