"""Scale each prompt by its own length, so that a short one does not pay for a long context."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from ... import ORIGINAL
from ...errors import InputError
from ...geometry import RopeGeometry, RopeScaling
from ...methods.registry import METHODS, get, register


def _label(options: dict) -> str | None:
    return f"{METHODS[options['of']].title}, by length" if options.get("of") in METHODS else None


@register("by-length", "by length", label=_label, by_length=True)
def by_length(geometry: RopeGeometry, factor: float, *, of: str) -> RopeScaling:
    """Another method at the scale ⌈n/L⌉ of a prompt's n tokens, at most s; a prompt within L is not
    scaled.

    As CLEX, but in this process alone: a checkpoint has one scale.

    Args:
        of: the method, such as yarn or dprope.
    """
    if not get(of).ready:
        raise InputError(
            f"the method {of!r} needs more than its name; scale by length with another one."
        )
    return replace(get(of).function(geometry, factor), install=partial(_install, of=of))


def _install(model, geometry: RopeGeometry, factor: float, of: str) -> None:
    """Give a model's embeddings what their class computes at each scale; a pass whose length is not
    set has s."""
    from ... import clex  # imports torch, which tables and figures do not need
    from ...huggingface import embedding, rotation

    factor = float(factor)
    by_scale = {}
    # The model's own scale is first, so that a model that cannot be scaled stays as it is, and
    # last, because it stays.
    for scale in (factor, *map(float, range(1, math.ceil(factor))), factor):
        scaling = get(ORIGINAL if scale == 1 else of).scale(geometry, scale)
        embedding.apply_scaling(model, geometry, scaling, scale)
        clex.remove(model)
        _, _, rotary = rotation.rotary_module(model)
        by_scale[scale] = rotation.state(rotary)
    rotary.for_length = partial(_state, geometry.context_length, by_scale)


def _state(context_length: int, states: dict[float, dict], length: int) -> dict:
    """An embedding's state at the scale of a prompt of `length` tokens."""
    scale = max(math.ceil(length / context_length), 1)
    return states[min(scale, max(states))]
