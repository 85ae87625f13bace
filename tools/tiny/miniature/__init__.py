"""Miniature benchmarks: generated tasks on public-domain text, with train and eval splits that share nothing."""

from tools.tiny.miniature import longbench, open_llm, reading, retrieval  # noqa: F401  (they register their generators)
from tools.tiny.miniature.sample import GENERATORS, Sample, Setting, Turn, make, written

__all__ = ["GENERATORS", "Sample", "Setting", "Turn", "make", "written"]
