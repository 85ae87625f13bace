"""YaRN without its temperature, DPRoPE with it.

It separates the choice of pairs from the temperature: each with and without the other.
"""

from __future__ import annotations

from analysis.beyond import temperature
from analysis.results import Results
from analysis.settings import STATES
from core import rope
from tables.kit.benchmark_table import INTERVALS, OVER_TEXTS
from tables.kit.table import Table, noted, score_block

CAPTION = (
    f"{rope.METHODS[rope.BASELINE].title}'s temperature on and off, for {rope.METHODS[rope.BASELINE].title} and for "
    "DPRoPE. “Attention × 1.07” means that queries and keys are multiplied by 1.07; 1.00 is no temperature. "
    f"Sliding-window perplexity at L and L', and the per cent of passkeys found at both, {INTERVALS}; a sample is a "
    f"prompt. Of perplexity: {OVER_TEXTS[0].lower()}{OVER_TEXTS[1:]}"
)


def build(results: Results) -> Table:
    """From the records of experiments.perplexity and experiments.passkey."""
    blocks, left_out = [], []
    for trained, state in STATES:
        by_factor, others = temperature.rows(results, trained)
        for factor, found in by_factor.items():
            title = f"{results.model.title}, measured {state}, s = {factor:g}"
            rows = [(setting.name, scores) for setting, scores in found.items()]
            blocks.append(score_block(title, rows, digits=2, best=None))
        left_out += others if by_factor else []
    if not blocks:
        raise results.lacks("setting with an attention factor", "passkey", "--method yarn --attention-factor 1")
    return noted(Table("temperature", CAPTION, tuple(blocks)), left_out)
