"""Methods that depend on nothing but the geometry, and factors read from a file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from .. import files
from ..angles import real_array
from ..errors import InputError
from ..geometry import RopeGeometry, RopeScaling
from ..rope import GIVEN, NTK, ORIGINAL, RESONANCE, RIVAL, TO_BEAT, UNIT, register
from .parts import divide, interpolate, positive, yarn_limits, yarn_temperature


@register(ORIGINAL, "original", styles=(("#000000", (0, (1, 1))),))
def original(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """No scaling: plain extrapolation to L'."""
    return interpolate(geometry, factor, np.zeros(geometry.pairs, dtype=bool), stock={"rope_type": "default"})


@register(UNIT, "PI", published=True, styles=(("#E69F00", "--"),))
def position_interpolation(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """Position interpolation, θ/s for every pair (Chen et al. 2023; paper, section 2.2)."""
    stock = {"rope_type": "linear", "factor": factor}
    return interpolate(geometry, factor, np.ones(geometry.pairs, dtype=bool), stock=stock)


@register(NTK, "NTK-aware", styles=(("#009E73", (0, (5, 1, 1, 1))),))
def ntk_aware(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """NTK-aware scaling: base·s^(d/(d−2)), so that the last pair is divided by exactly s (bloc97, 2023)."""
    if geometry.head_dim == 2:
        raise InputError("NTK-aware scaling needs at least two pairs; this model rotates one. Use another method.")
    base = geometry.base * factor ** (geometry.head_dim / (geometry.head_dim - 2))
    return _rebased(geometry, base, np.arange(geometry.pairs) == geometry.pairs - 1)


@register("ntk-critical", "NTK, critical base", styles=(("#117733", (0, (8, 1, 1, 1))),))
def ntk_critical(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """The critical base, base^(ln(L'/2π)/ln(L/2π)): the pair that turns once within L then turns once within L'.

    Liu et al., *Scaling Laws of RoPE-based Extrapolation* (2023), their theorem on the critical base.
    """
    if geometry.context_length <= 2 * np.pi:
        raise InputError("the critical base needs a context of more than 2π tokens; use another method.")
    longer = geometry.context_length * factor
    base = geometry.base ** (np.log(longer / (2 * np.pi)) / np.log(geometry.context_length / (2 * np.pi)))
    return _rebased(geometry, base, np.zeros(geometry.pairs, dtype=bool))


def _rebased(geometry: RopeGeometry, base: float, interpolated: np.ndarray) -> RopeScaling:
    inv_freq = RopeGeometry(geometry.head_dim, base, geometry.context_length).inv_freq
    return RopeScaling(inv_freq, 1.0, interpolated, stock={"rope_type": "default", "rope_theta": float(base)})


@register(RIVAL, "YaRN", published=True, styles=(("#0072B2", "-."),), variants=({RESONANCE: True},))
def yarn(
    geometry: RopeGeometry,
    factor: float,
    *,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    ramp: str = "index",
    attention_factor: float | None = None,
) -> RopeScaling:
    """YaRN (Peng et al. 2023): keep pairs with many rotations within L, interpolate those with few, blend between.

    The number of rotations is r_i = L/λ_i.

    Args:
        beta_fast: β; pairs with more than β rotations within L are kept.
        beta_slow: α; pairs with fewer than α rotations within L are interpolated.
        ramp: "index" blends linearly in the pair index between whole-number limits, as the official code does;
            "rotations" blends linearly in r_i, the number of rotations, as the reproduced paper prints it (equation 4).
        attention_factor: √(1/t), which multiplies both queries and keys; each method has its own default, YaRN's is
            0.1·ln s + 1.
    """
    if not 0 < beta_slow < beta_fast:
        raise InputError(f"YaRN needs 0 < beta_slow < beta_fast, but they are {beta_slow} and {beta_fast}.")
    if ramp == "index":
        low, high = yarn_limits(geometry, beta_fast, beta_slow)
        # The official code widens an empty ramp by 0.001 to divide by it.
        weight = (np.arange(geometry.pairs) - low) / (high - low if high != low else 1e-3)
    elif ramp == "rotations":
        rotations = geometry.context_length / geometry.wavelength
        weight = (beta_fast - rotations) / (beta_fast - beta_slow)
    else:
        raise InputError(f"unknown YaRN ramp {ramp!r}; choose index or rotations.")
    weight = np.clip(weight, 0, 1)
    inv_freq = geometry.inv_freq * (1 - weight) + geometry.inv_freq / factor * weight
    # Engines that read the stock type compute s as L'/L and the attention factor from s; they know no other ramp.
    longer = geometry.context_length * factor
    stock = None
    if ramp == "index" and attention_factor is None and longer.is_integer():
        stock = {
            "rope_type": "yarn",
            "factor": factor,
            "original_max_position_embeddings": int(geometry.context_length),
            "beta_fast": float(beta_fast),
            "beta_slow": float(beta_slow),
        }
    if attention_factor is None:
        attention_factor = yarn_temperature(factor)
    return RopeScaling(inv_freq, positive(attention_factor), weight == 1, stock=stock)


@register("llama3", "Llama 3", styles=(("#882255", (0, (6, 2, 2, 2))),))
def llama3(
    geometry: RopeGeometry, factor: float, *, low_freq_factor: float = 1.0, high_freq_factor: float = 4.0
) -> RopeScaling:
    """NTK by parts as in Llama 3: keep short wavelengths, divide long ones by s, blend linearly in L/λ_i between.

    The thresholds are L/`high_freq_factor` and L/`low_freq_factor`. Transformers calls this type ``llama3``.

    Args:
        low_freq_factor: pairs with fewer rotations within L, L/λ_i, are interpolated.
        high_freq_factor: pairs with more rotations within L, L/λ_i, are kept.
    """
    if not 0 < low_freq_factor < high_freq_factor:
        given = f"{low_freq_factor} and {high_freq_factor}"
        raise InputError(f"Llama 3's scaling needs 0 < low_freq_factor < high_freq_factor, but they are {given}.")
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
    """MrRoPE, uniform: λ_i = s^(t/n), with t = i − low within YaRN's limits and n = high − low (arXiv 2601.22181).

    Args:
        beta_fast, beta_slow: as for YaRN.
    """
    steps, count = _radix(geometry, beta_fast, beta_slow)
    return divide(geometry, factor, factor ** (steps / count), yarn_temperature(factor))


@register(TO_BEAT, "MrRoPE-Pro", styles=(("#332288", (0, (5, 1, 1, 1, 1, 1))),))
def mrrope_pro(
    geometry: RopeGeometry, factor: float, *, beta_fast: float = 32.0, beta_slow: float = 1.0
) -> RopeScaling:
    """MrRoPE, progressive: λ_i = s^(t(t+1)/(n(n+1))), with t and n as for MrRoPE-Uni (arXiv 2601.22181).

    Args:
        beta_fast, beta_slow: as for YaRN.
    """
    steps, count = _radix(geometry, beta_fast, beta_slow)
    return divide(geometry, factor, factor ** (steps * (steps + 1) / (count * (count + 1))), yarn_temperature(factor))


def _radix(geometry: RopeGeometry, beta_fast: float, beta_slow: float) -> tuple[np.ndarray, int]:
    """t [pairs] and n."""
    if not 0 < beta_slow < beta_fast:
        raise InputError(f"MrRoPE needs 0 < beta_slow < beta_fast, but they are {beta_slow} and {beta_fast}.")
    low, high = yarn_limits(geometry, beta_fast, beta_slow)
    count = max(high - low, 1)
    return np.clip(np.arange(geometry.pairs) - low, 0, count), count


@register("longrope2", "LongRoPE2's rule", styles=(("#AA4499", (0, (2, 1))),))
def longrope2(geometry: RopeGeometry, factor: float, *, critical_pair: int | None = None) -> RopeScaling:
    """LongRoPE2's critical dimension without its search: λ_i = s from the critical pair c on, s^(i/c) below it.

    The theoretical c = ⌈(d/2)·log_base(L/2π)⌉ is the first pair that does not turn once within L. LongRoPE2 (arXiv
    2502.20082) runs an evolutionary search, which finds a lower c and the factors from c on. Here the factors from c on
    are the smallest that its constraint λ_i ≥ s allows. The attention factor is LongRoPE's √(1 + ln s/ln L).

    Args:
        critical_pair: c, the first pair that is divided by s; by default the theoretical one.
    """
    if critical_pair is None:
        turns = np.log(max(geometry.context_length / (2 * np.pi), 1)) / np.log(geometry.base)
        critical_pair = int(np.ceil(geometry.pairs * turns))
    if critical_pair < 1:
        raise InputError(f"the critical pair is {critical_pair}; give a whole number from 1 to {geometry.pairs}.")
    by = factor ** np.minimum(np.arange(geometry.pairs) / critical_pair, 1)
    return divide(geometry, factor, by, longrope_temperature(geometry, factor))


def longrope_temperature(geometry: RopeGeometry, factor: float) -> float:
    """LongRoPE's attention factor √(1 + ln s/ln L) (arXiv 2402.13753)."""
    return float(np.sqrt(1 + np.log(factor) / np.log(geometry.context_length)))


@register(GIVEN, "given factors", styles=(("#000000", "-"), ("#666666", "-")))
def given_factors(
    geometry: RopeGeometry, factor: float, *, file: str | os.PathLike, attention_factor: float | None = None
) -> RopeScaling:
    """Divide each pair by a factor λ_i from a file, as LongRoPE does: factors that were published, searched or learned.

    Args:
        file: a JSON list of d/2 factors; or an object with such a list as `factors` or `long_factor`, and optionally an
            `attention_factor`.
        attention_factor: √(1/t), which multiplies both queries and keys; by default the file's, or if the file states
            none, LongRoPE's √(1 + ln s/ln L).
    """
    by, stated = _read(Path(file), geometry)
    if attention_factor is None:
        attention_factor = longrope_temperature(geometry, factor) if stated is None else stated
    return divide(geometry, factor, by, attention_factor)


LEAST, MOST = 0.001, 1_000_000  # a factor outside this range must be a mistake


def _read(file: Path, geometry: RopeGeometry) -> tuple[np.ndarray, float | None]:
    """The factors in a file, float64 [pairs], and the attention factor that it states, or None."""
    remedy = "give a JSON list of factors, or an object with such a list as factors"
    if not file.is_file():
        raise InputError(f"there is no file {file}; {remedy}.")
    found = files.read_json(file, remedy, kind=(list, dict))
    stated = found.get("attention_factor") if isinstance(found, dict) else None
    values = found.get("factors", found.get("long_factor")) if isinstance(found, dict) else found
    by = real_array(values if isinstance(values, list) else [], f"the factors of {file}")
    if by.shape != (geometry.pairs,) or (by < LEAST).any() or (by > MOST).any():
        raise InputError(f"{file} holds no list of {geometry.pairs} factors from {LEAST} to {MOST:,}; {remedy}.")
    return by, stated
