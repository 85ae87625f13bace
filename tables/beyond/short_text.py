"""What extending costs on texts that fit in L."""

from __future__ import annotations

from analysis.beyond import short_text
from analysis.comparison import factors
from analysis.results import Results
from analysis.settings import STATES
from tables.kit.benchmark_table import OVER_TEXTS
from tables.kit.table import Table, noted, score_block

CAPTION = (
    "What extending costs on texts that fit in L: the difference to the unextended model on the same texts. The "
    "difference in perplexity is in per cent, at the positions below L of the texts whose loss is measured by "
    "position; that on the Open LLM benchmarks is in points, with bootstrap 95 % intervals in brackets, paired by "
    f"document. Perplexity is paired by text. {OVER_TEXTS}"
)


def build(results: Results) -> Table:
    """From the records of experiments.beyond.loss_by_position and of experiments.open_llm."""
    blocks, left_out = [], []
    for factor in factors(results, "open_llm"):
        for trained, state in STATES:
            found = short_text.differences(results, factor, trained)
            rows = [(setting.name, scores) for setting, scores in found.items()]
            if rows:
                title = f"{results.model.title}, measured {state}, s = {factor:g}"
                signed = list(dict.fromkeys(metric for scores in found.values() for metric in scores))
                left_out += short_text.left_out(results, factor, trained)
                blocks.append(score_block(title, rows, best=None, signed=signed))
    if not blocks:
        raise results.lacks("scores by document of two settings", "open_llm", "--method original NAME")
    return noted(Table("short_text", CAPTION, tuple(blocks)), left_out)
