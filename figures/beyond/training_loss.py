"""Training loss of each fine-tune minus YaRN's, step by step.

Beyond the paper, at the base model's own learning rate. Both models read the same sequences of L'
tokens in the same order; above zero is more loss than YaRN. A thin line is one seed, a thick one
the mean over all.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from analysis.beyond import training
from analysis.results import Results
from analysis.settings import seed_count
from core import rope
from figures.kit import style

BASELINE = rope.METHODS[rope.BASELINE].title


def build(results: Results) -> Figure:
    """A panel for each scaling factor.

    Raises:
        NotMeasured: no fine-tune read what a fine-tune of YaRN read.
    """
    n_hat, gaps = results.model.n_hat, training.gaps(results).items()
    shown = {
        key: gap
        for key, gap in gaps
        if key[0].plain("n_hat") and key[0].option("n_hat") in (None, n_hat.get(key[0].factor))
    }
    if not shown:
        raise results.lacks(f"fine-tune on the data of {BASELINE}'s", "finetune", "--method yarn")
    factors = sorted({setting.factor for setting, _ in shown})
    drawn = style.styles(
        *([each for each, _ in shown if each.factor == factor] for factor in factors)
    )
    size = (style.PAGE, 2.2) if len(factors) > 1 else (3.4, 2.2)
    figure, panels = plt.subplots(1, len(factors), figsize=size, squeeze=False)
    for axes, factor in zip(panels[0], factors):
        ends, colours = {}, {}
        for setting in dict.fromkeys(each for each, _ in shown if each.factor == factor):
            runs = np.array([gap for (each, _), gap in shown.items() if each == setting])
            steps, line = np.arange(1, runs.shape[1] + 1), style.line(drawn[setting])
            axes.plot(steps, runs.T, **line | {"linewidth": 0.5})
            axes.plot(steps, runs.mean(axis=0), **line)
            ends[setting.name], colours[setting.name] = (
                (steps[-1], runs.mean(axis=0)[-1]),
                drawn[setting][0],
            )
        axes.axhline(0, color="black", linewidth=0.4)
        most = max(Counter(each for each, _ in shown if each.factor == factor).values())
        axes.set_title(f"s = {factor:g}, {'up to ' * (most > 1)}{seed_count(most)}", loc="left")
        axes.set_xlabel("step")
        style.compress(axes)
        style.name_curves(axes, ends, colours)
    panels[0][0].set_ylabel(f"training loss minus {BASELINE}'s\n(nats per token)")
    return figure
