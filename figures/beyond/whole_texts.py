"""Loss against position, whole books.

Beyond the paper. The loss by position in windows of L' over whole books. Right of the dotted line are positions that
the model never saw in pre-training. A state's first panel has the losses of the methods that the paper compares, means
over the texts. Its other panels have DPRoPE's settings and other methods as differences: above zero is more loss than
YaRN, below zero less, on an axis that is compressed away from zero.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from analysis.beyond import whole_texts
from analysis.comparison import Row, in_comparison
from analysis.results import Results
from analysis.settings import STATES
from figures.beyond import loss_by_position


def build(results: Results) -> Figure:
    """Panels for each factor and state: without training, fine-tuned.

    Raises:
        NotMeasured: no record of experiments.perplexity of whole texts by position.
    """
    listed = in_comparison(results.model)
    shown = {
        f"{state}, s = {factor:g}": {row.setting: _curve(row) for row in rows.only(listed).rows}
        for factor in whole_texts.measured_factors(results)
        for trained, state in STATES
        if (rows := whole_texts.runs(results, trained, factor))
    }
    if not shown:
        raise results.lacks("whole text by position", "perplexity", "--by-position --tokens all")
    return loss_by_position.draw(shown, results.model.context_length)


def _curve(row: Row) -> tuple[np.ndarray, np.ndarray]:
    """Positions in tokens, and the mean over texts of each text's mean loss there, float64 [buckets] each."""
    windows = [of_text.reshape(-1, of_text.shape[-1]) for of_text in whole_texts.losses(row).values()]
    loss = np.ma.stack([np.ma.masked_invalid(own).mean(axis=0) for own in windows]).mean(axis=0)  # a text may end early
    position = (np.arange(len(loss)) + 0.5) * row.first["bucket"]
    reached = ~np.ma.getmaskarray(loss)
    return position[reached], loss.data[reached]
