"""Perplexity over the tokens that a long context helps to predict (LongPPL).

Beside that over all tokens, within L and beyond it.
"""

from analysis.beyond import long_perplexity, loss_by_position
from analysis.comparison import comparisons, factors
from analysis.results import Results
from analysis.settings import STATES, tokens
from tables.kit.benchmark_table import OVER_TEXTS, seeds
from tables.kit.table import Table, score_block, titles

KEY_TOKENS = (
    "Key tokens (LongPPL) are those the base model predicts 2 nats better from L tokens than from an eighth of it, at "
    "less than 2 nats."
)
CAPTION = (
    f"Perplexity over all tokens and over key tokens of texts of L' tokens, read at once. {KEY_TOKENS} {OVER_TEXTS} "
    "The best is bold."
)


def build(results: Results) -> Table:
    """From the records of experiments.beyond.long_perplexity: a block for each factor."""
    results.require("long_perplexity")
    blocks = []
    for trained, state in STATES:
        for factor in factors(results, "long_perplexity"):
            for rows in comparisons(results, "long_perplexity", trained, factor=factor):
                scored = [(row.setting.name, row.scores(long_perplexity.perplexities)) for row in rows.rows]
                texts = f"{titles(loss_by_position.texts(rows.first))}, L' = {tokens(rows.first['length'])}"
                title = f"{results.model.title}, {state}{seeds(rows.rows)}, s = {factor:g}, {texts}"
                blocks.append(score_block(title, scored, digits=2, best=min))
    return Table("long_perplexity", CAPTION, tuple(blocks))
