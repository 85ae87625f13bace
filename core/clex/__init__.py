"""CLEX (Chen et al. 2023): its neural ODE, its rotary embedding, and both in a loaded model."""

from .model import (
    FILE,
    drawing,
    fixed,
    from_weights,
    install,
    is_installed,
    narrow,
    remove,
    restore,
    save,
)
from .rotary import ClexRotaryEmbedding, Draws

__all__ = [
    "FILE",
    "ClexRotaryEmbedding",
    "Draws",
    "drawing",
    "fixed",
    "from_weights",
    "install",
    "is_installed",
    "narrow",
    "remove",
    "restore",
    "save",
]
