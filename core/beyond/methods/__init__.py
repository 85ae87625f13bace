"""Methods beyond the paper, one or several a module; core.methods finds them."""

from ... import methods  # noqa: F401 (which imports all modules here, whichever of them is imported first)
