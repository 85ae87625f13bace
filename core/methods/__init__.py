"""The methods, in the order of tables and figures; importing this registers them (see :mod:`core.rope`)."""

from . import fixed, learned, distributional  # noqa: F401, I001
