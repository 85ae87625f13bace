"""Loss and perplexity over key tokens (LongPPL): the records of experiments.beyond.long_perplexity."""

from dataclasses import replace

import numpy as np

from analysis.beyond.loss_by_position import texts
from analysis.comparison import Row, compared
from analysis.results import Results
from analysis.scores import Score, Scores, over_texts, stacked

TOKENS = {"all": "all tokens", "key": "key tokens"}
SIDES = {"within": "within L", "beyond": "beyond L"}


def loss(*runs: dict, side: str = "beyond", tokens: str = "key") -> Score | None:
    """The mean loss in nats, over the texts that have such tokens; None if none has.

    Args:
        runs: a setting's records, one per seed.
        side, tokens: keys of SIDES and TOKENS.
    """
    names, of = list(runs[0]["texts"]), np.array(texts(runs[0]))
    sums = stacked([[run["texts"][name][side][tokens] for name in names] for run in runs])
    by_text = np.stack([sums[:, of == title].sum(axis=1) for title in np.unique(of)], axis=1)  # [seeds, texts, 2]
    by_text = by_text[:, by_text[0, :, 1] > 0]
    return over_texts(by_text[..., 0] / by_text[..., 1]) if by_text.size else None


def perplexities(record: dict) -> Scores:
    """Over all tokens and over key tokens, within L and beyond it: exp of the mean over texts of :func:`loss`."""
    losses = {
        f"{TOKENS[tokens]}, {SIDES[side]}": loss(record, side=side, tokens=tokens)
        for tokens in TOKENS
        for side in SIDES
    }
    return {name: each and replace(each.to(np.exp), geometric=True) for name, each in losses.items()}


def key_loss(results: Results, row: Row) -> Score | None:
    """The loss beyond L over the key tokens of the texts of a row of losses by position; None if not measured."""

    def same(record: dict) -> bool:
        return all(record.get(name) == row.first.get(name) for name in ("data", "length", "excerpts"))

    compared_rows = compared(results, "long_perplexity", row.trained, of=same, factor=row.setting.factor)
    measured = compared_rows.find(row.setting.method, dict(row.setting.options))
    return None if measured is None else loss(*measured.runs)
