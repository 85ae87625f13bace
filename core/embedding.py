"""The rotary embedding of a loaded Hugging Face model: its pre-training geometry, and other inverse frequencies for it.

Any per-pair scaling can be written in the stock ``longrope`` configuration, whose inverse frequencies are
1 / (factor_i · base^(2i/d)). The model in memory is given that configuration and a rotary embedding that the
model's own class builds from it, so it computes what a plain ``from_pretrained`` of the export computes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from core.errors import InputError
from core.geometry import RopeGeometry, RopeScaling


def rope_geometry(model: PreTrainedModel) -> RopeGeometry:
    """The geometry a loaded model was pre-trained with, read from its configuration and rotary embedding.

    Raises:
        InputError: no rotary embedding, one that is not plain RoPE or scaled already, or no context length.
    """
    config = text_config(model.config)
    rotaries = rotary_modules(model)
    if not rotaries:
        raise InputError(
            f"{type(model).__name__} has no rotary embedding that can be extended; "
            "the method needs a RoPE model such as Llama, Mistral or Qwen."
        )
    inv_freq = getattr(rotaries[0][2], _buffer_name(_layer_type(config)))
    geometry = config_geometry(config, head_dim=2 * inv_freq.numel())
    # Buffers may have been cast to bfloat16 (8 bits of mantissa); anything further off is another scaling.
    tolerance = 1e-5 if inv_freq.dtype == torch.float32 else 2**-7
    plain = _rope_parameters(config).get("rope_type") == "default"
    if plain and not np.allclose(inv_freq.double().cpu().numpy(), geometry.inv_freq, rtol=tolerance, atol=0):
        raise InputError(
            f"{type(model).__name__}'s inverse frequencies are not base^(-2i/d); only plain RoPE can be extended."
        )
    return geometry


def config_geometry(config: PreTrainedConfig, head_dim: int | None = None) -> RopeGeometry:
    """The pre-training geometry that a configuration states (no weights needed).

    Args:
        config: a model's configuration.
        head_dim: d, when known from the model itself; else derived from the configuration.

    Raises:
        InputError: not a RoPE configuration, RoPE scaled by something else already, or no context length.
    """
    config = text_config(config)
    parameters = _rope_parameters(config)
    length = getattr(config, "max_position_embeddings", None)
    rope_type = parameters.get("rope_type", "default")
    if rope_type == "longrope" and parameters["short_factor"] == parameters["long_factor"]:
        length = parameters["original_max_position_embeddings"]  # extended by this module: start again
    elif rope_type != "default":
        raise InputError(
            f"this model's RoPE is scaled already (rope_type {rope_type!r}); "
            "start from the checkpoint that was pre-trained without scaling."
        )
    if not length:
        raise InputError(
            "the configuration does not state the context length the model was pre-trained with; "
            "add max_position_embeddings to its config.json."
        )
    try:
        if head_dim is None:
            per_head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
            head_dim = int(per_head * parameters.get("partial_rotary_factor", 1.0))
        return RopeGeometry(head_dim, float(parameters["rope_theta"]), int(length))
    except (TypeError, ValueError, KeyError, ArithmeticError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the configuration does not describe a RoPE model ({error}); mend its config.json.") from error


def apply_scaling(
    model: PreTrainedModel, geometry: RopeGeometry, scaling: RopeScaling, factor: float
) -> PreTrainedModel:
    """Give the model the inverse frequencies and attention factor of `scaling`, in place."""
    config = text_config(model.config)
    layer_type = _layer_type(config)
    parameters = dict(_rope_parameters(config))
    # Python floats survive JSON exactly; both lists are equal because transformers switches between them by length.
    factors = (geometry.inv_freq / scaling.inv_freq).tolist()
    parameters |= {
        "rope_type": "longrope",
        "rope_theta": geometry.base,
        "factor": float(factor),
        "original_max_position_embeddings": int(geometry.context_length),
        "short_factor": factors,
        "long_factor": factors,
        "attention_factor": float(scaling.attention_factor),
        # vLLM ignores attention_factor and would apply √(1 + ln s / ln L) unless it finds these.
        "short_mscale": float(scaling.attention_factor),
        "long_mscale": float(scaling.attention_factor),
    }
    # Configurations are shared with the rotary embedding, so they are changed in place.
    if layer_type is None:
        config.rope_parameters = parameters
    else:
        config.rope_parameters = {**config.rope_parameters, layer_type: parameters}
    config.max_position_embeddings = round(geometry.context_length * factor)
    if getattr(config, "head_dim", 0) is None:  # Mixtral's default, which longrope cannot read
        config.head_dim = config.hidden_size // config.num_attention_heads
    if hasattr(config, "original_max_position_embeddings"):  # Phi-3 prefers this field to the one above
        config.original_max_position_embeddings = int(geometry.context_length)

    for parent, name, rotary in rotary_modules(model):
        device = next(rotary.buffers()).device
        setattr(parent, name, _keep_float32(type(rotary)(config)).to(device))
    return model


def text_config(config: PreTrainedConfig) -> PreTrainedConfig:
    """The part of a configuration that is the language model's (all of it, but for multimodal models)."""
    return config.get_text_config(decoder=True)


def rotary_modules(model: nn.Module) -> list[tuple[nn.Module, str, nn.Module]]:
    """(parent, attribute, rotary embedding) for every stock rotary embedding in the model."""
    if not getattr(text_config(model.config), "rope_parameters", None):
        return []
    buffer = _buffer_name(_layer_type(text_config(model.config)))
    return [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(getattr(child, buffer, None), torch.Tensor) and hasattr(child, "rope_type")
    ]


def _layer_type(config: PreTrainedConfig) -> str | None:
    """The layers to extend where RoPE differs by layer type (Gemma 3): the global ones; windows need none."""
    nested = config.nested_rope_parameter_keys(getattr(config, "rope_parameters", None) or {})
    if nested and "full_attention" not in nested:
        raise InputError(f"RoPE is set per layer type ({', '.join(nested)}), none of them full_attention.")
    return "full_attention" if nested else None


def _rope_parameters(config: PreTrainedConfig) -> dict:
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        raise InputError(
            f"a {config.model_type!r} model has no RoPE parameters in its configuration; "
            "the method needs a RoPE model such as Llama, Mistral or Qwen."
        )
    layer_type = _layer_type(config)
    return parameters if layer_type is None else parameters[layer_type]


def _buffer_name(layer_type: str | None) -> str:
    return "inv_freq" if layer_type is None else f"{layer_type}_inv_freq"


class _Float32Buffers:
    """Mixed into a rotary embedding: its buffers follow the module's device but never its dtype.

    In bfloat16 the angle of the fastest pair is off by radians after a few hundred positions; ``.to(dtype)``,
    ``.half()`` and DeepSpeed's engine would cast the buffers, all through ``nn.Module._apply``.
    """

    def _apply(self, fn, recurse=True):
        kept = {name: buffer.clone() for name, buffer in self.named_buffers(recurse=False)}
        super()._apply(fn, recurse)
        for name, buffer in kept.items():
            self._buffers[name] = buffer.to(self._buffers[name].device)
        return self


def _keep_float32(rotary: nn.Module) -> nn.Module:
    cls = type(rotary)
    if not issubclass(cls, _Float32Buffers):
        # Same name and module: transformers recognises rotary embeddings by their class's name.
        rotary.__class__ = type(cls.__name__, (_Float32Buffers, cls), {"__module__": cls.__module__})
    return rotary
