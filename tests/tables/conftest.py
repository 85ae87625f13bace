from tests.analysis.made import made

__all__ = ["made"]
