"""Model families: the best-known compute by the scaled frequencies, others are refused and stay as
they were."""

import copy

import pytest
import torch
import transformers

from core.errors import InputError
from core.extend import export, extend, extend_checkpoint
from core.geometry import RopeGeometry
from core.rope import BASELINE, ORIGINAL, PROPOSED, TIME_REFERENCE, scale
from eval.generation import Request, generate
from experiments.kit.model import resolve
from tests.models import SIZES, random_model

L = SIZES["max_position_embeddings"]
TOKENS = (
    torch.arange(300)[None].remainder(293) + 3
)  # past L' = 256, so that every length regime is met
MIXED = {
    "head_dim": 16,
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": 32,
}
PLAIN = {"rope_type": "default", "rope_theta": 1e4}  # where a class's default is scaled already
FAMILIES = {
    "CohereConfig": {},  # interleaves the pairs
    "DeepseekV3Config": {  # latent attention, which has no groups
        **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "v_head_dim"), 16),
        **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim"), 8),
        **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "first_k_dense_replace"), 1),
        "num_key_value_heads": 4,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
    },
    "FalconConfig": {"alibi": False},
    "GPTNeoXConfig": {},  # rotates a quarter of each head
    "Gemma3TextConfig": MIXED,  # has RoPE of its own in each type of layer
    "Glm4Config": {"head_dim": 16},
    "GptOssConfig": {
        **MIXED,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "rope_parameters": PLAIN,
    },
    "LlamaConfig": {},
    "MixtralConfig": {"num_local_experts": 2},  # its head_dim defaults to None
    "Phi3Config": {"partial_rotary_factor": 0.5, "sliding_window": None},
    "PhimoeConfig": {"num_local_experts": 2},  # takes no type without mscales
    "Qwen3Config": {"head_dim": 32},
    "SmolLM3Config": {"no_rope_layers": [1, 0]},
    "StableLmConfig": {},
}
LINEAR = {
    **dict.fromkeys(("linear_num_value_heads", "linear_num_key_heads"), 2),
    **dict.fromkeys(("head_dim", "linear_key_head_dim", "linear_value_head_dim"), 16),
    "layer_types": ["linear_attention", "full_attention"],
}
# rotate only where they have full attention; the other layers keep a state that no cache can crop
HYBRIDS = {
    "FalconH1Config": {
        **dict.fromkeys(("mamba_d_head", "mamba_d_state"), 16),
        "mamba_d_ssm": 64,
        "mamba_n_heads": 4,
    },
    "Lfm2Config": {"layer_types": ["conv", "full_attention"]},
    "MiniMaxConfig": {**LINEAR, "num_local_experts": 2, "block_size": 16},
    "Qwen3_5TextConfig": LINEAR,
}
FAMILIES |= HYBRIDS


def logits(model, tokens=TOKENS):
    with torch.inference_mode():
        return model(tokens, use_cache=False).logits.float()


def loaded(model, directory):
    """What transformers alone makes of a checkpoint."""
    return type(model).from_pretrained(directory, dtype=model.dtype)


def by_hand(model, method):
    """The model with the inverse frequencies of its global layers replaced in their buffers, in
    place."""
    parameters = model.config.rope_parameters
    kind = "full_attention_" if "full_attention" in parameters else ""
    base = (parameters["full_attention"] if kind else parameters)["rope_theta"]
    for module in model.modules():
        if (buffer := getattr(module, f"{kind}inv_freq", None)) is not None:
            scaling = scale(RopeGeometry(2 * buffer.numel(), base, L), method, 2)
            buffer.copy_(torch.from_numpy(scaling.inv_freq))
            setattr(module, f"{kind}attention_scaling", scaling.attention_factor)
            # PhiMoE's class computes both in each pass
            given = (buffer, scaling.attention_factor)
            module.rope_init_fn = lambda *_, given=given: given
    return model


@pytest.mark.parametrize("architecture", FAMILIES)
def test_a_family_rotates_by_the_scaled_frequencies_in_memory_and_from_disk(tmp_path, architecture):
    model = random_model(architecture, **FAMILIES[architecture])
    unextended = copy.deepcopy(model)
    plain = logits(model)
    extended = {}
    close = {"rtol": 1e-3, "atol": 1e-3 * plain.abs().max().item()}
    for method in (BASELINE, PROPOSED):
        extended[method] = logits(extend(model, method, 2))
        assert torch.isfinite(extended[method]).all() and not torch.equal(extended[method], plain)
        torch.testing.assert_close(
            extended[method], logits(by_hand(copy.deepcopy(unextended), method)), **close
        )
    exported = export(model, tmp_path / "exported")
    assert torch.equal(logits(loaded(model, exported)), extended[PROPOSED])
    on_disk = extend_checkpoint(exported, tmp_path / "on disk", BASELINE, 2)
    assert torch.equal(logits(loaded(model, on_disk)), extended[BASELINE])


WINDOWED = {"layer_types": MIXED["layer_types"], "sliding_window": 32}
LISTS = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": L}
REFUSED = {
    # no rotated pair of tokens is further apart than the window
    "Cohere2Config": (WINDOWED, "rotates only in"),
    "FalconConfig": ({"alibi": True}, "no rotary embedding"),
    "Gemma4TextConfig": ({**MIXED, "hidden_size_per_layer_input": 8}, "type 'proportional'"),
    "GraniteSWAConfig": ({"layer_rope_theta": [1e6, 1e4]}, "no rotary embedding"),
    "MistralConfig": ({"sliding_window": L // 2}, "each layer sees a window of"),
    "Ministral3Config": (
        {"rope_parameters": YARN | {"llama_4_scaling_beta": 0.1}},
        "attention is scaled beside it",
    ),
    "Qwen2Config": (  # as DeepSeek's
        {"rope_parameters": YARN | {"rope_theta": 1e4, "mscale": 1.0, "mscale_all_dim": 1.0}},
        "attention is scaled beside it",
    ),
}


@pytest.mark.parametrize("architecture", REFUSED)
def test_what_is_no_plain_rope_of_all_tokens_is_refused(architecture):
    options, says = REFUSED[architecture]
    model = random_model(architecture, **options)
    config = model.config.to_dict()
    before = logits(model, TOKENS[:, :100])
    with pytest.raises(InputError, match=says) as error:
        extend(model, TIME_REFERENCE, 2)
    assert model.config.to_dict() == config and torch.equal(logits(model, TOKENS[:, :100]), before)
    assert "already" not in str(error.value)


def test_one_answer_has_the_attention_factor_of_its_length_where_a_class_chooses_it_in_each_pass():
    """PhiMoE's class does."""
    mscales = {"short_mscale": 1.2, "long_mscale": 1.3, "original_max_position_embeddings": 64}
    rope = LISTS | mscales | {"rope_theta": 1e4}
    model = random_model("PhimoeConfig", rope_parameters=rope, num_local_experts=4)
    # 74 in all, so beyond 64
    prompt = tuple(range(3, 53))
    tokens = 24
    ((_, generated),) = generate(model, [Request("", prompt, tokens)])
    read = list(prompt)
    while len(read) < 74:
        padded = torch.tensor([read + [1] * (74 - len(read))])
        read.append(int(logits(model, padded)[0, len(read) - 1].argmax()))
    assert list(generated) == read[50 : 50 + len(generated)] and generated


def qwen2_vl():
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
    }
    text = {**sizes, "intermediate_size": 48, "vocab_size": 300, "max_position_embeddings": L}
    text["rope_parameters"] = {**PLAIN, "mrope_section": [2, 3, 3]}
    vision = {"depth": 1, "embed_dim": 16, "num_heads": 2, "hidden_size": 32}
    config = transformers.Qwen2VLConfig(text_config=text, vision_config=vision)
    torch.manual_seed(0)
    return transformers.Qwen2VLForConditionalGeneration(config).eval()


def test_the_language_models_rotary_is_extended_not_the_vision_towers(tmp_path):
    model = qwen2_vl()
    tower = next(
        module
        for name, module in model.named_modules()
        if "visual" in name and hasattr(module, "inv_freq")
    )
    seen = tower.inv_freq.clone()
    model.save_pretrained(tmp_path / "source")
    extend(model, TIME_REFERENCE, 2)
    assert torch.equal(tower.inv_freq, seen)
    extended = loaded(
        model, extend_checkpoint(tmp_path / "source", tmp_path / "extended", TIME_REFERENCE, 2)
    )
    assert torch.equal(logits(extended), logits(model))
    assert torch.equal(logits(resolve(str(tmp_path / "extended")).load()), logits(model))
    scaled = 1e4 ** -(torch.arange(0, 16, 2) / 16) / 2
    assert torch.allclose(extended.model.language_model.rotary_emb.inv_freq, scaled)


@pytest.mark.parametrize("change", [copy.deepcopy, lambda model: model.init_weights() or model])
def test_an_extended_model_stays_extended(change):
    model = random_model("Gemma3TextConfig", **MIXED)
    plain = logits(model)
    expected = logits(extend(model, PROPOSED, 2))
    weights = copy.deepcopy(model.state_dict())
    for module in model.modules():
        module._is_hf_initialized = False
    (changed := change(model)).load_state_dict(weights)
    assert torch.allclose(logits(changed), expected, atol=1e-6)
    assert torch.allclose(
        logits(extend(changed, ORIGINAL, 2)), plain, atol=1e-6
    ) and not torch.equal(plain, expected)
