"""Factors from a file: published, or learned (experiments/beyond/learned.py)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from ... import ORIGINAL, files
from ...angles import real_array
from ...errors import InputError
from ...geometry import RopeGeometry, RopeScaling
from ...methods.registry import METHODS, register
from ...schema import Count, Number, check, having
from .published_rules import divide, longrope_attention_factor

LEAST, MOST = 0.001, 1_000_000  # a factor outside this range must be a mistake
# of factors that were learned
_RECORD = having({"run": having({"factor": Number}, {"length": Count}), "scores": having({})})
_LEARNED = re.compile(r"from=(.+)_s=[^_]+_seed=(\d+)")  # the name of a record of learned factors


def learned_from(options: dict) -> tuple[str, int] | None:
    """The start and the seed, if the file is a record of learned factors; else None."""
    name = _LEARNED.fullmatch(Path(str(options.get("file", ""))).stem)
    return (name[1], int(name[2])) if name else None


def learned_name(method: str) -> str:
    """The name, in tables and figures, of factors that were learned from a method's."""
    title = METHODS[method].title if method in METHODS else method
    return f"learned, from {'no scaling' if method == ORIGINAL else title}"


def _label(options: dict) -> str | None:
    start = learned_from(options)
    return f"{learned_name(start[0])}, seed {start[1]}" if start else None


@register("factors", "given factors", label=_label, styles=(("#000000", "-"), ("#666666", "-")))
def given_factors(
    geometry: RopeGeometry,
    factor: float,
    *,
    file: str | os.PathLike,
    attention_factor: float | None = None,
) -> RopeScaling:
    """Divide each pair by a factor λ_i from a file, as LongRoPE does: factors that were published
    or learned.

    Args:
        file: a JSON list of d/2 factors; or an object with such a list as `factors` or
            `long_factor`, and optionally an `attention_factor`.
        attention_factor: √(1/t), which multiplies both queries and keys; by default the file's, or
            if the file states none, LongRoPE's √(1 + ln s/ln L).
    """
    by, of_file = _read(Path(file), geometry, factor)
    if attention_factor is None:
        attention_factor = (
            longrope_attention_factor(geometry, factor) if of_file is None else of_file
        )
    return divide(geometry, factor, by, attention_factor)


def _read(file: Path, geometry: RopeGeometry, factor: float) -> tuple[np.ndarray, float | None]:
    """The factors in a file, float64 [pairs], and the attention factor that it states, or None."""
    remedy = "give a JSON list of factors, or an object with such a list as factors"
    content = files.read_json(file, remedy, kind=(list, dict))
    if isinstance(content, list):
        content = {"factors": content}
    if {"run", "scores"} <= content.keys():
        check(content, _RECORD, str(file), remedy)
        longer = round(geometry.context_length * factor)
        learned_on = content["run"].get("length", longer)
        if content["run"]["factor"] == factor and learned_on != longer:
            raise InputError(
                f"the factors in {file} were learned on {learned_on} tokens, and "
                f"this model extends to {longer}; give factors that were learned on it."
            )
        content = {**content["scores"], "factor": content["run"]["factor"]}
    of = content.get("factor", factor)
    if of != factor:
        raise InputError(
            f"the factors in {file} are for s = {of}, not {factor:g}; give the file for that "
            f"factor."
        )
    values = content.get("factors", content.get("long_factor"))
    by = real_array(values if isinstance(values, list) else [], f"the factors of {file}")
    if by.shape != (geometry.pairs,) or (by < LEAST).any() or (by > MOST).any():
        raise InputError(
            f"{file} holds no list of {geometry.pairs} factors from {LEAST} to {MOST:,}; {remedy}."
        )
    return by, content.get("attention_factor")
