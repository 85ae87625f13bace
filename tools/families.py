"""Try to extend every model type that transformers knows as a causal language model, from a tiny random configuration.

    python -m tools.families              try all, and write the table results/families.csv
    python -m tools.families llama phi3   try these and print what came out

A type is right if, for each method, the extended model computes what the model computes whose inverse frequencies were
replaced by hand, and if its export, the export's reload, a checkpoint extended on disk and one extended twice compute
the same. Otherwise the sentence of the refusal is what came out.
"""

from __future__ import annotations

import copy
import csv
import io
import sys
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from core import files
from core.errors import InputError, in_one_line
from core.extend import export, extend, extend_checkpoint
from core.geometry import RopeGeometry
from core.rope import BASELINE, PROPOSED, TIME_REFERENCE, scale
from experiments.kit import command_line, records

TABLE = records.ROOT / "results" / "families.csv"
TYPES = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
METHODS = TIME_REFERENCE, BASELINE, PROPOSED
RIGHT, NO_ROPE, NOT_BUILT = "right", "no RoPE", "not built"
LENGTH, WINDOW, FACTOR = 80, 32, 2  # L, the width of sliding and chunked layers, s
TOKENS = torch.arange(LENGTH * FACTOR)[None] % 90 + 5

# Sizes by the names that configurations have for them.
_NAMES: dict[int, str] = {
    LENGTH: "max_position_embeddings n_positions max_seq_len",
    99: "vocab_size",
    96: "intermediate_size ffn_dim ffn_hidden_size",
    64: "hidden_size hidden_size_global d_model n_embd lru_width",
    WINDOW: "sliding_window attention_chunk_size attention_window_size mamba_chunk_size moe_intermediate_size "
    "expert_intermediate_size shared_expert_intermediate_size mamba_d_head",
    16: "head_dim v_head_dim q_lora_rank kv_lora_rank index_head_dim index_topk mamba_d_state image_size",
    8: "rotary_dim qk_rope_head_dim qk_nope_head_dim patch_size",
    4: "num_hidden_layers num_layers n_layers n_layer num_attention_heads n_heads n_head num_experts num_local_experts "
    "n_routed_experts moe_num_experts index_n_heads mamba_n_heads",
    2: "num_key_value_heads num_experts_per_tok moe_k moe_topk eos_token_id",
    1: "bos_token_id n_group topk_group n_shared_experts num_shared_experts first_k_dense_replace",
    0: "pad_token_id",
}
_SIZES = {name: size for size, names in _NAMES.items() for name in names.split()}
# A global layer for every windowed or linear one, where the default has none among so few.
_MIXED = {"layer_types": ["sliding_attention", "full_attention"] * 2}
_LINEAR = {"layer_types": ["linear_attention", "full_attention"] * 2}
_CONVOLUTION = {"layer_types": ["conv", "full_attention"] * 2}
_PLAIN = {"rope_type": "default", "rope_theta": 1e4}
_PER_LAYER = {"vocab_size_per_layer_input": 99, "hidden_size_per_layer_input": 8}
_MORE: dict[str, dict] = {
    **dict.fromkeys(("mellum", "laguna", "kolibri1", "gemma3_text", "ministral"), _MIXED),
    **{each: {"rope_parameters": _PLAIN} for each in ("apertus", "cwm", "gpt_oss")},
    "bailing_hybrid": {
        "max_position_embeddings": LENGTH,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        **_LINEAR,
    },
    "granitemoehybrid": {**_LINEAR, "position_embedding_type": "rope"},
    **dict.fromkeys(("lfm2", "lfm2_moe"), _CONVOLUTION),
    "blt": {"encoder_hash_byte_group_vocab": 99},
    "bamba": {"attn_layer_indices": [1, 3]},
    "cohere_compass_text": {"rope_parameters": {"full_attention": _PLAIN}},
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 10000.0},
        "ffn_config": {"ffn_hidden_size": 96, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "falcon_h1": {"mamba_d_ssm": 128},
    "gemma3": {"text_config": _MIXED},
    "gemma3n_text": {
        "num_kv_shared_layers": 0,
        "intermediate_size": [96] * 4,
        "activation_sparsity_pattern": [0.0] * 4,
        **_MIXED,
        **_PER_LAYER,
    },
    "gemma4": {"text_config": _MIXED | _PER_LAYER},
    "gemma4_text": _MIXED | _PER_LAYER,
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16, "num_experts": 1, "moe_topk": 1},
    "longcat_flash": {
        "head_dim": 8,
        "n_routed_experts": 4,
        "zero_expert_num": 2,
        "moe_topk": 2,
        "expert_ffn_hidden_size": 32,
    },
    "ministral": {"head_dim": 16, **_MIXED},
    "mimo_v2_flash": {"head_dim": 48},  # of which 0.334 rotates
    "ministral3": {
        "rope_parameters": _PLAIN | {"llama_4_scaling_beta": 0.1, "original_max_position_embeddings": LENGTH}
    },
    "nemotron": {"num_key_value_heads": 2},
    "zamba2": {
        "layers_block_type": ["linear_attention", "hybrid"] * 2,
        "use_mem_rope": True,
        "n_mamba_heads": 4,
        "mamba_headdim": 32,
    },
    "zaya": {"num_experts_per_tok": 1, "layer_types": ["hybrid"] * 4},
}


def config(model_type: str) -> PreTrainedConfig:
    """A tiny configuration of a type, as like its default as its class allows."""
    cls = CONFIG_MAPPING[model_type]
    stated = _small(cls())
    for name, value in _MORE.get(model_type, {}).items():
        is_part = isinstance(value, dict) and isinstance(stated.get(name), dict)
        stated[name] = stated[name] | value if is_part else value
    return cls(**stated)


def _small(default: PreTrainedConfig) -> dict:
    stated = {}
    for name, value in _SIZES.items():
        known = vars(default).get(name) is not None
        if known and not isinstance(getattr(type(default), name, None), property):
            stated[name] = value
    if "qk_rope_head_dim" in stated:  # latent attention has no groups, and derives d itself
        stated = {**stated, "num_key_value_heads": 4}
        stated.pop("head_dim", None)
    for name in default.sub_configs:
        if isinstance(part := getattr(default, name, None), PreTrainedConfig):
            stated[name] = _small(part)
    return stated


def random_model(model_type: str) -> PreTrainedModel:
    """A seeded model whose weights are large enough for positions to matter."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config(model_type)).float().eval()
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim == 2:
                weights.mul_(4)
    return model


def logits(model: PreTrainedModel) -> torch.Tensor:
    """float32 [2L, vocabulary]."""
    with torch.inference_mode():
        return model(TOKENS, use_cache=False).logits[0].float()


def by_hand(model: PreTrainedModel, method: str) -> PreTrainedModel:
    """The model with the inverse frequencies of its global layers replaced in their buffers, in place."""
    parameters = model.config.get_text_config(decoder=True).rope_parameters
    kind = "full_attention_" if "full_attention" in parameters else ""
    base = (parameters["full_attention"] if kind else parameters)["rope_theta"]
    for module in model.modules():
        if (buffer := getattr(module, f"{kind}inv_freq", None)) is not None:
            scaling = scale(RopeGeometry(2 * buffer.numel(), base, LENGTH), method, FACTOR)
            buffer.copy_(torch.from_numpy(scaling.inv_freq))
            setattr(module, f"{kind}attention_scaling", scaling.attention_factor)
            module.rope_init_fn = lambda *_, same=(buffer, scaling.attention_factor): same  # PhiMoE calls it each time
    return model


def outcome(model_type: str, methods: Iterable[str] = METHODS) -> str:
    """RIGHT, what is wrong, the sentence of the refusal, NO_ROPE, or NOT_BUILT and why.

    Raises:
        AssertionError: two ways to the same model compute different logits.
    """
    try:
        if not hasattr(CONFIG_MAPPING[model_type]().get_text_config(decoder=True), "rope_parameters"):
            return NO_ROPE
        model = random_model(model_type)
        if not model.config.get_text_config(decoder=True).rope_parameters:
            return NO_ROPE
        plain = logits(model)
    except Exception as error:  # transformers' own defaults may contradict each other
        return f"{NOT_BUILT}: {in_one_line(error)}"
    with tempfile.TemporaryDirectory() as scratch:
        source, cls, unextended = Path(scratch) / "source", type(model), copy.deepcopy(model)
        model.save_pretrained(source)
        for method in methods:
            before = model.config.to_dict(), logits(model)
            try:
                extend(model, method, FACTOR)
            except InputError as error:
                assert model.config.to_dict() == before[0], "a refusal changed the configuration"
                assert torch.equal(logits(model), before[1]), "a refusal changed the model"
                return str(error)
            extended, expected = logits(model), logits(by_hand(copy.deepcopy(unextended), method))
            assert torch.isfinite(extended).all() and not torch.equal(extended, plain), f"{method} changes nothing"
            _same(expected, extended, f"{method} by hand")
            _same(logits(_load(cls, export(model, Path(scratch) / f"{method}-export"))), extended, f"{method} exported")
            on_disk = extend_checkpoint(source, Path(scratch) / method, method, FACTOR)
            _same(logits(_load(cls, on_disk)), extended, f"{method} on disk")
            again = extend_checkpoint(on_disk, Path(scratch) / f"{method}-again", method, FACTOR)
            _same(logits(_load(cls, again)), extended, f"{method} extended twice")
    return RIGHT


def _load(cls: type[PreTrainedModel], directory: Path) -> PreTrainedModel:
    return cls.from_pretrained(directory, dtype=torch.float32).eval()


def _same(one: torch.Tensor, other: torch.Tensor, what: str) -> None:
    difference = (one - other).abs().max().item()
    assert difference < 1e-3 * other.abs().max().item(), f"{what}: logits differ by {difference:.2g}"


def main() -> None:
    transformers.utils.logging.disable_progress_bar()
    chosen = sys.argv[1:] or TYPES
    rows = []
    for model_type in chosen:
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            try:
                came_out = outcome(model_type)
            except AssertionError as error:
                came_out = f"wrong: {error}"
        note = next((str(each.message) for each in notes if issubclass(each.category, UserWarning)), "")
        rows.append({"type": model_type, "outcome": came_out, "note": note if came_out == RIGHT else ""})
        print(f"{model_type}: {came_out} {rows[-1]['note']}", flush=True)
    if not sys.argv[1:]:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, ("type", "outcome", "note"), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        files.write(TABLE, text.getvalue().encode())
        print(TABLE)


if __name__ == "__main__":
    command_line.run(main)
