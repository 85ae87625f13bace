"""The exceptions a user is meant to read; command lines print them as one sentence and exit with status 2."""

import math
from numbers import Real


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, and what to do instead."""


class NonFiniteError(ArithmeticError):
    """The model produced a loss or logits that are not finite numbers; the message names the sample."""


def is_whole(value: object) -> bool:
    """Whether a number that a caller gave is a finite whole one."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and int(value) == value
