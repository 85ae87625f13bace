"""The rotary embedding of a loaded Hugging Face model: read its pre-training geometry, change its inverse frequencies.

The model in memory gets a stock configuration (see :mod:`core.huggingface.configuration`) and a rotary embedding that
its own class builds from it, so it computes what a plain ``from_pretrained`` of the export computes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from ..errors import InputError
from ..geometry import RopeGeometry, RopeScaling
from .configuration import EXTENSION, layer_type, rope_parameters, scale_config, text_config


def rope_geometry(model: PreTrainedModel) -> RopeGeometry:
    """The geometry a loaded model was pre-trained with, read from its configuration and rotary embedding.

    Raises:
        InputError: the model has no rotary embedding, its RoPE is not plain or is scaled already, or its configuration
            states no context length.
    """
    config = text_config(model.config)
    rotaries = rotary_modules(model)
    if not rotaries:
        raise InputError(
            f"{type(model).__name__} has no rotary embedding that can be extended; "
            "the method needs a RoPE model such as Llama, Mistral or Qwen."
        )
    inv_freq = getattr(rotaries[0][2], _buffer_name(layer_type(config)))
    geometry = config_geometry(config, head_dim=2 * inv_freq.numel())
    # Buffers may have been cast to bfloat16 (8 bits of mantissa); a larger difference means another scaling.
    tolerance = 1e-5 if inv_freq.dtype == torch.float32 else 2**-7
    plain = rope_parameters(config).get("rope_type") == "default" and not hasattr(config, EXTENSION)
    if plain and not np.allclose(inv_freq.double().cpu().numpy(), geometry.inv_freq, rtol=tolerance, atol=0):
        raise InputError(
            f"{type(model).__name__}'s inverse frequencies are not base^(-2i/d); only plain RoPE can be extended."
        )
    return geometry


def config_geometry(config: PreTrainedConfig, head_dim: int | None = None) -> RopeGeometry:
    """The pre-training geometry that a configuration states (no weights needed).

    Args:
        config: a model's configuration.
        head_dim: d, if known from the model itself; None to derive it from the configuration.

    Raises:
        InputError: the configuration is not that of a RoPE model, its RoPE is scaled already (other than by this
            project), or it states no context length.
    """
    config = text_config(config)
    parameters = rope_parameters(config)
    rope_type = parameters.get("rope_type", "default")
    extension = getattr(config, EXTENSION, None)  # the model was extended by this project: start from its geometry
    if rope_type != "default" and not extension:
        raise InputError(
            f"this model's RoPE is scaled already (rope_type {rope_type!r}); "
            "start from the checkpoint that was pre-trained without scaling."
        )
    stated = extension or {**parameters, "context_length": getattr(config, "max_position_embeddings", None)}
    if not stated["context_length"]:
        raise InputError("the configuration states no context length; add max_position_embeddings to its config.json.")
    try:
        if head_dim is None:
            per_head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
            head_dim = int(per_head * parameters.get("partial_rotary_factor", 1.0))
        return RopeGeometry(head_dim, float(stated["rope_theta"]), stated["context_length"])
    except InputError:
        raise
    except (TypeError, ValueError, KeyError, ArithmeticError) as error:
        raise InputError(
            f"the configuration does not describe a RoPE model ({error}); correct its config.json."
        ) from error


def apply_scaling(
    model: PreTrainedModel, geometry: RopeGeometry, scaling: RopeScaling, factor: float
) -> PreTrainedModel:
    """Give the model the inverse frequencies and attention factor of `scaling`, in place."""
    config = text_config(model.config)
    scale_config(config, geometry, scaling, factor)
    for parent, name, rotary in rotary_modules(model):
        rebuilt = type(rotary)(config)
        _check(rebuilt, layer_type(config), scaling)
        # Declared plain, so that no pass chooses between two equal lists of factors and all run the same operators.
        layers = layer_type(config)
        rebuilt.rope_type = "default" if layers is None else {**rebuilt.rope_type, layers: "default"}
        setattr(parent, name, _keep_float32(rebuilt).to(next(rotary.buffers()).device))
    return model


def differences(rotary: nn.Module, other: nn.Module) -> list[str]:
    """The names of the attention factors and buffers in which two embeddings of one class differ, to the last bit."""
    factors = [name for name in vars(rotary) if name.endswith("attention_scaling")]
    buffers = [name for name, _ in rotary.named_buffers(recurse=False)]
    return [name for name in factors if getattr(rotary, name) != getattr(other, name)] + [
        name
        for name in buffers
        if not torch.equal(rotary.get_buffer(name).cpu().float(), other.get_buffer(name).float())
    ]


def rotary_modules(model: nn.Module) -> list[tuple[nn.Module, str, nn.Module]]:
    """(parent, attribute, rotary embedding) for every stock rotary embedding in the model."""
    if not getattr(text_config(model.config), "rope_parameters", None):
        return []
    buffer = _buffer_name(layer_type(text_config(model.config)))
    return [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(getattr(child, buffer, None), torch.Tensor) and hasattr(child, "rope_type")
    ]


def _check(rotary: nn.Module, layers: str | None, scaling: RopeScaling) -> None:
    """Raise RuntimeError unless an embedding built from a configuration computes what the method decided."""
    inv_freq = getattr(rotary, _buffer_name(layers)).double().cpu().numpy()
    attention_factor = getattr(rotary, "attention_scaling" if layers is None else f"{layers}_attention_scaling")
    close = np.allclose(inv_freq, scaling.inv_freq, rtol=1e-5, atol=0)
    if not close or not np.isclose(attention_factor, scaling.attention_factor, rtol=1e-3):
        raise RuntimeError(f"the configuration makes another embedding of {type(rotary).__name__} than was decided")


def _buffer_name(layer_type: str | None) -> str:
    return "inv_freq" if layer_type is None else f"{layer_type}_inv_freq"


class _Float32Buffers(nn.Module):
    """A mixin for rotary embeddings: buffers follow the module's device but never its dtype.

    In bfloat16 the angle of the fastest pair is off by radians after a few hundred positions. ``.to(dtype)``,
    ``.half()`` and DeepSpeed's engine would all cast the buffers through ``nn.Module._apply``.
    """

    def _apply(self, fn, recurse=True):
        buffers = {name: buffer.clone() for name, buffer in self.named_buffers(recurse=False)}
        super()._apply(fn, recurse)
        for name, buffer in buffers.items():
            self._buffers[name] = buffer.to(self._buffers[name].device)
        return self


def _keep_float32(rotary: nn.Module) -> nn.Module:
    cls = type(rotary)
    if not issubclass(cls, _Float32Buffers):
        # Keep name and module: transformers recognises rotary embeddings by their class's name.
        rotary.__class__ = type(cls.__name__, (_Float32Buffers, cls), {"__module__": cls.__module__})
    return rotary
