"""The rotary embedding of a loaded Hugging Face model: read its pre-training geometry, change its
inverse frequencies.

The model in memory gets a stock configuration (see :mod:`core.huggingface.configuration`) and a
rotary embedding that its own class builds from it, so it computes what a plain ``from_pretrained``
of the export computes.
"""

import copy
import functools
import math
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import get_layer_types_and_kwargs

from ..errors import InputError
from ..geometry import RopeGeometry, RopeScaling
from ..schema import check
from . import schema
from .configuration import (
    EXTENSION,
    forms,
    layer_type,
    older_keys,
    rope_parameters,
    scale_config,
    text_config,
    trained_length,
)
from .rotation import (
    WITHIN_WINDOWS,
    Float32,
    at_length,
    buffer_name,
    factor_name,
    rotary_module,
    state,
)


def rope_geometry(model: PreTrainedModel) -> RopeGeometry:
    """The geometry that a loaded model was trained with, read from its configuration and rotary
    embedding.

    Of a model that this project extended, it is the one before. If a model has long and short
    factors (``longrope``), it is that of the long ones, which then hold for prompts of every
    length.

    Raises:
        InputError: as :func:`trained_length`, the model has no rotary embedding to extend, or it
            rotates otherwise than its configuration says.
    """
    config = text_config(model.config)
    name = type(model).__name__
    parameters = rope_parameters(config)
    extension = getattr(
        config, EXTENSION, None
    )  # the model was extended by this project: start from its geometry
    rope_type = parameters.get("rope_type", "default")
    if extension is not None:
        # what another program read was not checked as a file
        check(extension, schema.ROPE_EXTENSION, EXTENSION, schema.REMEDY)
        longer = round(extension["context_length"] * extension["factor"])
        if longer != config.max_position_embeddings:
            raise InputError(
                f"{EXTENSION} in the configuration states {longer} tokens and its "
                f"max_position_embeddings {config.max_position_embeddings}; extend the original "
                "model again."
            )
    pretrained = extension or {**parameters, "context_length": trained_length(config)}
    _, _, rotary = rotary_module(model)
    kind = layer_type(config)
    buffer = rotary.get_buffer(buffer_name(kind))
    if buffer.is_meta:
        raise InputError(f"{name} is on the meta device, without numbers; give it loaded.")
    pairs = buffer.numel()
    factors = parameters.get("long_factor")
    if factors and len(factors) != pairs:
        raise InputError(
            f"the configuration's RoPE has {len(factors)} factors, and {name} turns {pairs} pairs; "
            "give one for each pair."
        )
    base = pretrained.get("rope_theta", math.nan)  # is refused
    length = pretrained["context_length"]
    geometry = RopeGeometry(2 * pairs, base, length, **pretrained.get("scaled", {}))
    if extension:
        return geometry
    _check_windows(config, length)
    if rope_type != "default":
        geometry = _scaled(geometry, rope_type, rotary, config)
    # Each pass of longrope writes its buffers anew.
    if rope_type != "longrope" and not rotates_by(rotary, config, geometry):
        raise InputError(
            f"{name} rotates by other inverse frequencies or another attention factor than its "
            f"configuration gives ({rope_type} RoPE with the base {base:g}); give the model as it "
            "was trained."
        )
    return geometry


def _check_windows(config: PreTrainedConfig, length: int) -> None:
    """Refuse a model each of whose layers sees a window of at most L tokens: no rotated pair gets
    beyond pre-training."""
    _, layers = get_layer_types_and_kwargs(config)
    windows = [layer.get("sliding_window") for layer in layers]
    if windows and all(window and window <= length for window in windows):
        raise InputError(
            f"each layer sees a window of {max(windows):,} tokens at most, {WITHIN_WINDOWS}"
        )


def _scaled(
    plain: RopeGeometry, rope_type: str, rotary: nn.Module, config: PreTrainedConfig
) -> RopeGeometry:
    """The geometry of scaled RoPE, as its embedding's class computes it for L tokens.

    Raises:
        InputError: the class does not rotate by the inverse frequencies and the attention factor
            that it states.
    """
    kind = layer_type(config)
    fresh = _stock(rotary)(config)
    cosines(fresh, kind, [0, plain.context_length - 1])  # longrope chooses its factors in a pass
    scaled = replace(
        plain,
        frequencies=tuple(fresh.get_buffer(buffer_name(kind)).tolist()),
        attention_factor=getattr(fresh, factor_name(kind)),
        rope_type=rope_type,
    )
    if not _computes(fresh, kind, scaled, plain.context_length):
        raise InputError(
            f"a {config.model_type!r} model with RoPE of the type {rope_type!r} does not rotate "
            f"by the inverse "
            "frequencies and the attention factor that it computes; give another model."
        )
    return scaled


def rotates_by(
    rotary: nn.Module, config: PreTrainedConfig, stated: RopeGeometry | RopeScaling
) -> bool:
    """Whether an embedding has the frequencies, in bfloat16 (8 bits of mantissa) if it was cast,
    and the attention factor of a geometry or a scaling."""
    kind = layer_type(config)
    factor = getattr(rotary, factor_name(kind), 1.0)  # which not every class of plain RoPE has
    values = rotary.get_buffer(buffer_name(kind))
    tolerance = 1e-5 if values.dtype == torch.float32 else 2**-7
    turns = np.allclose(values.tolist(), stated.inv_freq, rtol=tolerance, atol=0)
    return turns and bool(np.isclose(factor, stated.attention_factor, rtol=1e-3))


def apply_scaling(
    model: PreTrainedModel, geometry: RopeGeometry, scaling: RopeScaling, factor: float
) -> PreTrainedModel:
    """Give the model the inverse frequencies and attention factor of `scaling`, in place.

    Raises:
        InputError: the model's class cannot express the scaling; nothing is changed then.
    """
    config = text_config(model.config)
    parent, name, rotary = rotary_module(model)
    kind = layer_type(config)
    before = copy.deepcopy(vars(config))
    longer = round(geometry.context_length * factor)
    try:
        for form in forms(config, geometry, scaling, longer):
            scale_config(config, geometry, form, factor)
            if scaled := _rebuilt(config, rotary, scaling, longer):
                break
        else:
            raise InputError(
                f"a {config.model_type!r} model's rotary embedding cannot express this scaling; "
                "give another method, or another model."
            )
    except BaseException:
        vars(config).clear()
        vars(config).update(before)
        raise
    # Declared plain, so that no pass chooses between two equal lists of factors and all run the
    # same operators.
    scaled.rope_type = "default" if kind is None else {**scaled.rope_type, kind: "default"}
    scaled.__class__ = _keeping(_stock(scaled))
    setattr(parent, name, scaled.to(next(rotary.buffers()).device))
    return model


def _rebuilt(
    config: PreTrainedConfig, rotary: nn.Module, scaling: RopeScaling, longer: int
) -> nn.Module | None:
    """What an embedding's class makes of a configuration; None unless it computes what the method
    decided, also by the configuration as it is written and read again."""
    kind = layer_type(config)
    try:
        written = type(config).from_dict(config.to_dict() | older_keys(config))
        for each in (written, config):
            rebuilt = _stock(rotary)(each)
            if not _computes(rebuilt, kind, scaling, longer):
                return None
    except Exception:  # a class that does not know the form may raise anything
        return None
    return rebuilt


def _computes(
    rotary: nn.Module, kind: str | None, stated: RopeGeometry | RopeScaling, longer: int
) -> bool:
    """Whether an embedding returns a·cos(m·θ̂_i) for an input of `longer` tokens, in any of the
    orders in use.

    Its frequencies are compared. So are its cosines where a pair has turned by a radian or two:
    float32 knows a far position's angle too badly (to 0.03 radians at 10^6).
    """
    inv_freq = rotary.get_buffer(buffer_name(kind)).double().numpy()
    radian = np.minimum(1 / inv_freq, longer - 1).round().astype(int)
    positions = [0, 1, *radian, longer - 1]
    cos = cosines(rotary, kind, positions)
    angles = np.outer(positions, inv_freq)
    pairs = len(inv_freq)
    near = angles < 2
    expected = stated.attention_factor * np.cos(angles)
    return np.allclose(inv_freq, stated.inv_freq, rtol=1e-5, atol=0) and any(
        np.allclose(order[0].numpy()[near], expected[near], rtol=1e-3, atol=1e-4)
        for order in (cos[..., :pairs], cos[..., ::2])
        if order.shape[-1] == pairs
    )


def cosines(rotary: nn.Module, kind: str | None, positions: list[int]) -> torch.Tensor:
    """What an embedding makes of one prompt's positions, [1, positions, columns].

    Args:
        kind: the type of layers, where RoPE differs by it; else None.
    """
    device = next(rotary.buffers()).device
    result = rotary(
        torch.zeros(1, 1, dtype=torch.float32, device=device),
        torch.tensor([positions], device=device),
        *([] if kind is None else [kind]),
    )
    return result[0] if isinstance(result, tuple) else torch.view_as_real(result)[..., 0]


def difference(model: PreTrainedModel, described: PreTrainedModel) -> str | None:
    """The name of something in which the rotary embedding of a model differs to the last bit from
    that of one just built, of its frequencies and attention factors; or None."""
    with at_length(model, 1):  # a long prompt may have left its own frequencies
        held, built = (
            {name: torch.as_tensor(value).tolist() for name, value in state(rotary).items()}
            for _, _, rotary in (rotary_module(model), rotary_module(described))
        )
    return next((name for name in built if built[name] != held.get(name)), None)


class _Kept(Float32):
    """A mixin for stock rotary embeddings: they keep their frequencies, whatever is done to the
    model. Initialising its weights anew would compute plain ones."""

    def compute_default_rope_parameters(
        self, *_, layer_type: str | None = None, **__
    ) -> tuple[torch.Tensor, float]:
        frequencies = self.get_buffer(buffer_name(layer_type))
        return frequencies.clone(), getattr(self, factor_name(layer_type))

    def __reduce_ex__(self, protocol):
        return _new, (_stock(self),), vars(self)


@functools.cache
def _keeping(cls: type) -> type:
    # Keep name and module: transformers recognises rotary embeddings by their class's name.
    return type(cls.__name__, (_Kept, cls), {"__module__": cls.__module__})


def _new(cls: type) -> nn.Module:
    """An empty module for copying and unpickling."""
    return object.__new__(_keeping(cls))


def _stock(rotary: nn.Module) -> type:
    """The class of transformers."""
    return type(rotary).__bases__[1] if isinstance(rotary, _Kept) else type(rotary)
