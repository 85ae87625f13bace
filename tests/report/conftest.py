from tests.analysis.claims.conftest import folder
from tests.analysis.made import score

__all__ = ["folder", "score"]
