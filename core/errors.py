"""The exceptions a user is meant to read; command lines print them as one sentence and exit with status 2."""

import math
from numbers import Real
from typing import TypeGuard


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, and what to do instead."""


class NonFiniteError(ArithmeticError):
    """The model produced a loss or logits that are not finite numbers; the message names the sample."""


def check_number(value: object, name: str, least: float = -math.inf) -> None:
    """Raise InputError unless it is a finite real number of at least so much."""
    if not is_finite(value) or value < least:
        wanted = "a finite number" + (f" of at least {least:g}" if least > -math.inf else "")
        raise InputError(f"{name} is {value!r}; give {wanted}.")


def check_whole(value: object, name: str, least: int) -> None:
    """Raise InputError unless it is a whole number of at least so much."""
    if not is_whole(value) or value < least:
        raise InputError(f"{name} is {value!r}; give a whole number of at least {least}.")


def is_whole(value: object) -> TypeGuard[float]:
    """Whether a number that a caller gave is a finite whole one."""
    return is_finite(value) and int(value) == value


def is_finite(value: object) -> TypeGuard[float]:
    """Whether a caller gave a real number that a float can hold."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
