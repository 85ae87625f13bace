"""The states of a model, and the names of lengths."""

from __future__ import annotations

from analysis.results import Results
from core import rope
from core.setting import Setting, tokens

BASELINE = rope.METHODS[rope.BASELINE].title  # YaRN
STATES = {False: "without training", True: "fine-tuned"}  # by whether a model was fine-tuned


def of_all_factors(setting: Setting) -> str:
    """A setting's name where it stands for all factors, whose n̂ differ."""
    title = rope.METHODS[rope.PROPOSED].title
    return f"{title} (the paper's n̂)" if setting.option("n_hat") else setting.name


def seed_count(seeds: int) -> str:
    """A number of training seeds as tables and pages print it."""
    return "one seed" if seeds == 1 else f"{seeds} seeds"


def span(start: int, end: int) -> str:
    """Positions in tokens as tables print them: 8–12k, 1024–1536."""
    whole = start % 1024 == 0 == end % 1024
    return f"{start // 1024}–{end // 1024}k" if whole else f"{start}–{end}"


def extended_length(results: Results, factor: float) -> int:
    """L' = s·L in tokens."""
    return round(results.context_length * factor)


def lengths(results: Results, factor: float) -> str:
    """L and L' as tables print them."""
    return f"{tokens(results.context_length)} to {tokens(extended_length(results, factor))}"
