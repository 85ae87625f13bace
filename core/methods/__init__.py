"""The methods: importing this registers the paper's in its order, then those of
core/beyond/methods, if it is there."""

# isort: off
from . import pi, yarn, clex, dprope  # noqa: F401
from .. import discovery

discovery.modules(__name__.rpartition(".")[0], "beyond.methods")
