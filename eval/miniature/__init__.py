"""Miniature benchmarks: generated tasks on public-domain text, with train and eval splits that share nothing."""

from eval.miniature import longbench, open_llm, reading, retrieval  # noqa: F401  (they register their generators)
from eval.miniature.sample import GENERATORS, Sample, Setting, Turn, make, written

__all__ = ["GENERATORS", "Sample", "Setting", "Turn", "make", "written"]
