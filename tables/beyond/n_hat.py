"""Every evaluation by n̂, the number of interpolated dimensions.

Without training, at the longest length.
"""

from __future__ import annotations

from collections import Counter

from analysis import metrics
from analysis.beyond import loss_by_position
from analysis.comparison import ablation
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import extended_length, tokens
from tables.kit.benchmark_table import OVER_TEXTS, QUICK
from tables.kit.table import Table, score_block

CAPTION = (
    "Influence of n̂ without training on the mean loss beyond L (nats per token), sliding-window perplexity, "
    "passkeys of all lengths (%), RULER (%) and the mean of the Open LLM benchmarks (%). Of the benchmarks, brackets "
    f"hold 95 % intervals over prompts or items. Of losses: {OVER_TEXTS[0].lower()}{OVER_TEXTS[1:]} The best is bold."
)
# By experiment: a column's title, the scores, which of them (None for that at the longest length), decimals, the best.
_COLUMNS = {
    "loss_by_position": ("Loss", loss_by_position.beyond, "beyond", 3, min),
    "perplexity": ("Perplexity", metrics.perplexity, None, 2, min),
    "passkey": ("Passkeys", metrics.passkeys_of_all_lengths, metrics.ALL, 0, max),
    "ruler": ("RULER", metrics.ruler, None, 1, max),
    "open_llm": ("Open LLM", metrics.open_llm, "Avg.", 1, max),
}


def build(results: Results) -> Table:
    """From DPRoPE's records of every experiment in the suite that goes through n̂, at the factor that has the most."""
    varied = {experiment: ablation(results, experiment, "n_hat", trained=False) for experiment in _COLUMNS}
    counts = Counter(row.setting.factor for rows in varied.values() for row in rows.values())
    factor = max(counts, key=lambda each: counts[each], default=1.0)
    longest = tokens(extended_length(results, factor))
    by_n_hat: dict[int, dict[str, Score]] = {}
    digits, best = {}, {}
    for experiment, (title, of, metric, decimals, pick) in _COLUMNS.items():
        name = title if metric else f"{title}, {longest}"
        digits[name], best[name] = decimals, pick
        for n_hat, row in varied[experiment].items():
            score = row.scores(of).get(metric or longest) if row.setting.factor == factor else None
            if score:
                by_n_hat.setdefault(n_hat, {})[name] = score
    if not by_n_hat:
        raise results.lacks("two n̂ without training", "passkey", "--method dprope --n-hat N")
    rows = [(str(n_hat), by_n_hat[n_hat]) for n_hat in sorted(by_n_hat, reverse=True)]
    title = f"{results.model.title}, s = {factor:g}" + QUICK * results.quick
    block = score_block(title, rows, first="n̂", digits=digits, best=None if results.quick else best)
    return Table("n_hat", CAPTION, (block,))
