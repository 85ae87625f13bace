"""The one exception a user is meant to read."""


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, and what to do instead.

    Command lines print it as one sentence and exit with status 2.
    """
