from tests.analysis.claims.conftest import folder
from tests.analysis.claims.made import score

__all__ = ["folder", "score"]
