from tests.analysis.recorder import recorder

__all__ = ["recorder"]
