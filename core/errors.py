"""The exceptions that users read: command lines print each as one sentence and exit with status 2."""

import math
from numbers import Real
from typing import TypeGuard


class InputError(ValueError):
    """The caller gave something that cannot be used. The message says what it is and what to do instead."""


class NonFiniteError(ArithmeticError):
    """The model produced a loss or logits that are not finite. The message names the sample."""


def check_number(value: object, name: str, least: float = -math.inf) -> None:
    """Raise InputError, with `name` in its message, unless `value` is a finite real number of at least `least`."""
    if not is_finite(value) or value < least:
        wanted = "a finite number" + (f" of at least {least:g}" if least > -math.inf else "")
        raise InputError(f"{name} is {value!r}; give {wanted}.")


def check_whole(value: object, name: str, least: int) -> None:
    """Raise InputError, with `name` in its message, unless `value` is a whole number of at least `least`."""
    if not is_whole(value) or value < least:
        raise InputError(f"{name} is {value!r}; give a whole number of at least {least}.")


def is_whole(value: object) -> TypeGuard[float]:
    """Whether `value` is a finite whole number, of any numeric type but bool."""
    return is_finite(value) and int(value) == value


def is_finite(value: object) -> TypeGuard[float]:
    """Whether `value` is a finite real number that a float can hold, of any numeric type but bool."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
