"""Methods beyond the paper, one or several a module; core.methods finds them."""

# It imports all modules here, whichever of them is imported first.
from ... import methods  # noqa: F401
