"""The exceptions that users read: command lines print each as one sentence and exit with status 2.

The checks below raise :class:`InputError` with the value's `name` in its message.
"""

import difflib
import math
from collections.abc import Iterable
from numbers import Real


class InputError(ValueError):
    """The caller gave something that cannot be used. The message says what it is and what to do
    instead."""


class DoesNotFit(InputError):
    """A prompt does not fit in the length that was asked for."""


class NonFiniteError(ArithmeticError):
    """The model produced a loss or logits that are not finite. The message names the sample."""


def check_number(
    value, name: str, least: float = -math.inf, most: float = math.inf, above: float = -math.inf
) -> float:
    """The value as a float, if it is a finite real number of any type but bool, and in range."""
    if not _is_finite(value) or not least <= value <= most or value <= above:
        limits = {"at least": least, "at most": most, "above": above}
        wanted = " and ".join(
            f"{words} {limit:g}" for words, limit in limits.items() if math.isfinite(limit)
        )
        raise InputError(f"{name} is {value!r}; give a finite number{wanted and ', '}{wanted}.")
    return float(value)


def check_whole(value, name: str, least: int, most: float = math.inf) -> int:
    """The value as an int, if it is a whole number of any numeric type but bool, and in range."""
    if not _is_finite(value) or int(value) != value or not least <= value <= most:
        limit = f" and at most {most}" if math.isfinite(most) else ""
        raise InputError(f"{name} is {value!r}; give a whole number of at least {least}{limit}.")
    return int(value)


def check_choice(value, name: str, choices: Iterable[str]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in list(choices):
        raise InputError(
            f"unknown {name} {value!r}{meant(value, choices)}; choose one of {', '.join(choices)}."
        )


def meant(value, choices: Iterable[str]) -> str:
    """The question whether the choice most like an unknown value was meant; empty if none is like
    it."""
    alike = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    return f" (did you mean {alike[0]!r}?)" if alike else ""


def check_texts(values, name: str) -> None:
    """Refuse what is not a list or a tuple of text, and text that no file of UTF-8 can hold."""
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise InputError(
            f"{name} must be text; give text, or a list of text where there are several."
        )
    try:
        "".join(values).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise InputError(
            f"{name} holds {half!r}, half of a surrogate pair and no character; replace it."
        ) from error


def _is_finite(value: object) -> bool:
    """Whether the value is a finite real number that a float can hold."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def in_one_line(said: object, width: int = 160) -> str:
    """What a library's error, a file or a server says, in one line that fits into a sentence; its
    type if it says nothing."""
    # A terminal must not obey its characters.
    printable = "".join(character if character.isprintable() else " " for character in str(said))
    words = " ".join(printable.split()) or type(said).__name__
    return words if len(words) <= width else f"{words[: width - 2]} …"
