"""The methods: importing this registers the paper's in its order, then those of
core/beyond/methods, if it is there."""

from .. import discovery
from . import paper  # noqa: F401  (registers the paper's, which come first)

_CORE = __name__.rpartition(".")[0]
discovery.modules(f"{_CORE}.beyond.methods")
