"""Figure 5: LongBench-E against the disturbance as n̂ falls.

n̂ falls as t rises, and the disturbance grows. From left to right fewer dimensions are interpolated. Solid line, left
axis: the LongBench-E score with its 95 % interval. Dashed line, right axis: the disturbance. If less disturbance
extended a model better, the score would fall where the disturbance rises.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from analysis import disturbance, metrics
from analysis.comparison import ablations
from analysis.results import NotMeasured, Results
from core import rope
from figures.kit import style

AVERAGE = "Avg."


def build(results: Results) -> Figure:
    """Both against n̂, from most to fewest dimensions interpolated; fine-tuned where there is that.

    Raises:
        NotMeasured: no ablation over n̂ by LongBench-E, or one of some lengths alone.
    """
    found = list(ablations(results, "longbench_e", "n_hat"))
    if not found:
        raise NotMeasured(
            f"no ablation over n̂ by longbench_e under {results.folder / results.model.name}; "
            f"measure several N with `{results.command('longbench_e', '--method dprope --n-hat N')}`."
        )
    state, varied = found[-1]
    rows = sorted(varied.items(), reverse=True)
    moved = [1e3 * disturbance.averaged(results, row.setting) for _, row in rows]
    found = [row.scores(metrics.longbench_e) for _, row in rows]
    if any(AVERAGE not in scores for scores in found):
        raise NotMeasured(
            f"longbench_e over n̂ under {results.folder / results.model.name} has no samples of some lengths, and so no "
            "average; measure it with `--limit all` and all --tasks."
        )
    scores = [scores[AVERAGE] for scores in found]
    spans = [[score.mean - score.ends[0] for score in scores], [score.ends[1] - score.mean for score in scores]]
    places = range(len(rows))

    figure, axes = plt.subplots(figsize=(style.COLUMN, 2.5))
    drawn = style.line(rope.METHODS[rope.OURS].styles[0]) | {"marker": "o", "markersize": 3}
    lines = [axes.errorbar(places, [s.mean for s in scores], yerr=spans, capsize=2, elinewidth=0.8, **drawn)]
    right = axes.twinx()
    lines += right.plot(places, moved, color="0.45", linestyle="--", marker="s", markersize=2.5)
    right.set_ylabel("disturbance (10⁻³ nat)")
    right.spines["right"].set_visible(True)
    right.grid(visible=False)
    axes.set_xticks(places, [str(n_hat) for n_hat, _ in rows])
    axes.set_xlabel("n̂, dimensions interpolated")
    axes.set_ylabel("score, mean over tasks")
    first = rows[0][1]
    kind = f", {first.first['benchmark']}" if "benchmark" in first.first else ""
    axes.set_title(f"{results.model.title}{kind},\n{state}, s = {first.setting.factor:g}", loc="left", fontsize=7)
    axes.set_ylim(0)
    right.set_ylim(0)
    axes.legend(lines, ["score", "disturbance"], loc="lower left")
    return figure
