"""Methods that others published: rules that choose each pair's factor by the geometry alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...errors import InputError, check_number, check_whole
from ...geometry import RopeGeometry, RopeScaling
from ...methods.paper import yarn, yarn_attention_factor, yarn_limits
from ...methods.registry import register

# Radians per position of a pair that stands still. Configurations state θ_i/θ̂_i, which must be
# finite, in float32 too; and at no position does so small an angle change a product in floating
# point.
STILL = 1e-30


@register("ntk", "NTK-aware", styles=(("#009E73", (0, (5, 1, 1, 1))),))
def ntk_aware(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """NTK-aware scaling: base·s^(d/(d−2)), so that the last pair is divided by exactly s (bloc97,
    2023)."""
    if geometry.head_dim == 2:
        raise InputError(
            "NTK-aware scaling needs at least two pairs; this model rotates one. Use another "
            "method."
        )
    base = geometry.check_base() * factor ** (geometry.head_dim / (geometry.head_dim - 2))
    return _rebased(geometry, base, np.arange(geometry.pairs) == geometry.pairs - 1)


@register("ntk-critical", "NTK, critical base", styles=(("#117733", (0, (8, 1, 1, 1))),))
def ntk_critical(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """The critical base, base^(ln(L'/2π)/ln(L/2π)): the pair that turns once within L then turns
    once within L'.

    Liu et al., *Scaling Laws of RoPE-based Extrapolation* (2023), their theorem on the critical
    base.
    """
    if geometry.context_length <= 2 * np.pi:
        raise InputError(
            "the critical base needs a context of more than 2π tokens; use another method."
        )
    longer = geometry.context_length * factor
    base = geometry.check_base() ** (
        np.log(longer / (2 * np.pi)) / np.log(geometry.context_length / (2 * np.pi))
    )
    return _rebased(geometry, base, np.zeros(geometry.pairs, dtype=bool))


@register("abf", "ABF")
def abf(geometry: RopeGeometry, factor: float, *, base: float) -> RopeScaling:
    """Adjusted base frequency: raise the base to a given value, as Llama 3 and ProLong did (arXiv
    2309.16039).

    It is the same at every s. The bases that follow from L' are methods of their own: `ntk` keeps
    how far the slowest pair turns, `ntk-critical` which pair is the last to turn once.

    Args:
        base: the new base, such as 500000.
    """
    check_number(base, "the raised base", above=geometry.check_base())
    return _rebased(geometry, base, np.zeros(geometry.pairs, dtype=bool))


def _rebased(geometry: RopeGeometry, base: float, interpolated: np.ndarray) -> RopeScaling:
    inv_freq = RopeGeometry(geometry.head_dim, base, geometry.context_length).inv_freq
    return RopeScaling(
        inv_freq, 1.0, interpolated, stock={"rope_type": "default", "rope_theta": float(base)}
    )


@register("yarn-resonance", "YaRN, resonance", styles=(("#56B4E9", (0, (1, 2))),))
def yarn_resonance(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """YaRN with every wavelength 2π/θ̂_i rounded to whole tokens (Resonance RoPE, arXiv
    2403.00071).

    So angles repeat, and a longer context has no new ones.
    """
    scaling = yarn(geometry, factor)
    inv_freq = 2 * np.pi / np.round(2 * np.pi / scaling.inv_freq)
    interpolated = np.isclose(geometry.inv_freq / inv_freq, factor, rtol=1e-12)
    return replace(scaling, inv_freq=inv_freq, interpolated=interpolated, stock=None)


@register("llama3", "Llama 3", styles=(("#999933", (0, (6, 2, 2, 2))),))
def llama3(
    geometry: RopeGeometry,
    factor: float,
    *,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> RopeScaling:
    """NTK by parts as in Llama 3: keep short wavelengths, divide long ones by s, blend linearly in
    L/λ_i between.

    The thresholds are L/`high_freq_factor` and L/`low_freq_factor`. Transformers calls this type
    ``llama3``.

    Args:
        low_freq_factor: pairs with fewer rotations within L, L/λ_i, are interpolated.
        high_freq_factor: pairs with more rotations within L, L/λ_i, are kept.
    """
    if not 0 < low_freq_factor < high_freq_factor:
        values = f"{low_freq_factor} and {high_freq_factor}"
        raise InputError(
            f"Llama 3's scaling needs 0 < low_freq_factor < high_freq_factor, but they are "
            f"{values}."
        )
    rotations = geometry.context_length / geometry.wavelength
    kept = np.clip((rotations - low_freq_factor) / (high_freq_factor - low_freq_factor), 0, 1)
    inv_freq = geometry.inv_freq * kept + geometry.inv_freq / factor * (1 - kept)
    stock = {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": float(low_freq_factor),
        "high_freq_factor": float(high_freq_factor),
        "original_max_position_embeddings": int(geometry.context_length),
    }
    return RopeScaling(inv_freq, 1.0, kept == 0, stock=stock)


@register("mrrope-uni", "MrRoPE-Uni", styles=(("#44AA99", "--"),))
def mrrope_uni(
    geometry: RopeGeometry, factor: float, *, beta_fast: float = 32.0, beta_slow: float = 1.0
) -> RopeScaling:
    """MrRoPE, uniform: λ_i = s^(t/n), with t = i − low within YaRN's limits and n = high − low
    (arXiv 2601.22181).

    Args:
        beta_fast, beta_slow: as for YaRN.
    """
    return _mixed_radix(geometry, factor, beta_fast, beta_slow, lambda steps: steps)


@register("mrrope-pro", "MrRoPE-Pro", styles=(("#332288", (0, (5, 1, 1, 1, 1, 1))),))
def mrrope_pro(
    geometry: RopeGeometry, factor: float, *, beta_fast: float = 32.0, beta_slow: float = 1.0
) -> RopeScaling:
    """MrRoPE, progressive: λ_i = s^(t(t+1)/(n(n+1))), with t and n as for MrRoPE-Uni (arXiv
    2601.22181).

    Args:
        beta_fast, beta_slow: as for YaRN.
    """
    return _mixed_radix(geometry, factor, beta_fast, beta_slow, lambda steps: steps * (steps + 1))


def _mixed_radix(
    geometry: RopeGeometry, factor: float, beta_fast: float, beta_slow: float, grown: Callable
) -> RopeScaling:
    """λ_i = s^(g(t)/g(n)), with g = `grown`."""
    low, high = yarn_limits(geometry, beta_fast, beta_slow)
    count = max(high - low, 1)
    steps = np.clip(np.arange(geometry.pairs) - low, 0, count)
    by = factor ** (grown(steps) / grown(count))
    return divide(geometry, factor, by, yarn_attention_factor(factor))


@register("longrope2", "LongRoPE2's rule", styles=(("#663300", (0, (2, 1))),))
def longrope2(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """LongRoPE2's critical dimension without its search: λ_i = s from the critical pair c on,
    s^(i/c) below it.

    The theoretical c = ⌈(d/2)·log_base(L/2π)⌉ is the first pair that does not turn once within L.
    LongRoPE2 (arXiv 2502.20082) finds a lower c, and searches the factors from c on. Here they are
    the smallest that its constraint λ_i ≥ s allows. The attention factor is LongRoPE's √(1 + ln
    s/ln L).
    """
    critical_pair = max(int(np.ceil(geometry.index_of(1))), 1)
    by = factor ** np.minimum(np.arange(geometry.pairs) / critical_pair, 1)
    return divide(geometry, factor, by, longrope_attention_factor(geometry, factor))


@register("cope", "CoPE")
def cope(geometry: RopeGeometry, factor: float, *, clipped: int | None = None) -> RopeScaling:
    """CoPE, clipped RoPE: the slowest pairs turn by 1 to 0 of their angle, along half a cosine
    (arXiv 2602.05258).

    It is the same at every s.

    Args:
        clipped: how many of the slowest pairs; by default 5/16 of all, as the authors' 20 of 64.
    """
    count = _clipped(geometry, clipped)
    return _slowed(geometry, (1 + np.cos(np.linspace(0, np.pi, count))) / 2)


@register("hardclip", "HardClip")
def hardclip(geometry: RopeGeometry, factor: float, *, clipped: int | None = None) -> RopeScaling:
    """HardClip, CoPE's abrupt counterpart: the slowest pairs do not turn at all (arXiv 2602.05258).

    With all pairs clipped there are no positions: that is DroPE (arXiv 2512.12167) before its
    recalibration, which is a short fine-tune at length L.

    Args:
        clipped: as for CoPE.
    """
    return _slowed(geometry, np.zeros(_clipped(geometry, clipped)))


def _clipped(geometry: RopeGeometry, count: int | None) -> int:
    count = max(geometry.pairs * 5 // 16, 1) if count is None else count
    return check_whole(count, "the number of clipped pairs", 1, geometry.pairs)


def _slowed(geometry: RopeGeometry, shares: np.ndarray) -> RopeScaling:
    """The slowest pairs turn by these shares of their angle."""
    inv_freq = geometry.inv_freq
    inv_freq[-len(shares) :] *= shares
    return RopeScaling(np.maximum(inv_freq, STILL), 1.0, np.zeros(geometry.pairs, dtype=bool))


def longrope_attention_factor(geometry: RopeGeometry, factor: float) -> float:
    """LongRoPE's attention factor √(1 + ln s/ln L) (arXiv 2402.13753)."""
    return float(np.sqrt(1 + np.log(factor) / np.log(geometry.context_length)))


def divide(
    geometry: RopeGeometry, factor: float, by: np.ndarray, attention_factor: float
) -> RopeScaling:
    """θ_i/λ_i for factors λ_i, float64 [pairs]."""
    return RopeScaling(geometry.inv_freq / by, attention_factor, by == factor)
