"""Beyond the paper: what extending costs on texts that fit in L (tables/short_text.tex)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eval.intervals import mean_interval, mean_of_means
from experiments import scales
from tables import common
from tables.benchmarks import STATES, Block, Row, Scores, comparable, stacked
from tables.openllm import TITLES

CAPTION = (
    r"Beyond the paper: what extending costs on texts that fit in $L$, as the difference to the unextended model on the "
    r"same texts. Perplexity: at the positions below $L$ of the books whose loss is measured by position, in per cent. "
    r"The Open LLM benchmarks: in points. In brackets: bootstrap 95\,\% intervals, paired by block of tokens and by "
    r"document."
)
PERPLEXITY = "Perplexity"


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.extension and of experiments.open_llm."""
    preset = scales.get(scale)
    factor = ((preset.suite.factors if preset.suite else None) or preset.factors)[0]
    blocks = []
    for trained, state in STATES:
        rows = [Row(name, scores) for name, scores in differences(results, scale, factor, trained).items()]
        if rows:
            blocks.append(Block(f"{preset.title}, measured {state}, $s={factor:g}$", rows))
    return common.narrower(stacked("short_text", blocks, CAPTION, best=None))


def differences(results: Path, scale: str, factor: float, trained: bool) -> dict[str, Scores]:
    """By method, what was measured of it minus the same of the unextended model; equal selections stand there once.

    Methods whose benchmark scores are recorded by document are listed. Of several seeds, the mean.
    """
    found: dict[str, Scores] = {}
    for experiment, difference in (("extension", _perplexity), ("open_llm", _benchmarks)):
        untrained = [group for group in comparable(results, scale, experiment, False) if group[0]["factor"] == factor]
        original = next((group[0] for group in untrained if group[0]["method"] == "original"), {})
        for group in comparable(results, scale, experiment, True) if trained else untrained:
            first = group[0]
            same = all(first.get(key) == original.get(key) for key in ("factor", "data", "length", "shots"))
            if same and first["method"] != "original" and "same_selection_as" not in first:
                found.setdefault(common.method_name(first), {}).update(difference(group, original))
    return {name: scores for name, scores in found.items() if set(scores) - {PERPLEXITY}}


def _perplexity(group: list[dict], original: dict) -> Scores:
    """In per cent, over the blocks below L."""
    within = original["ranges"][0]["end"] // original["block"]
    losses = [np.array(list(record["blocks"].values()))[:, :within] for record in [original, *group]]
    change = mean_interval((np.mean(losses[1:], axis=0) - losses[0]).ravel())
    return {PERPLEXITY: change | {end: 100 * float(np.expm1(change[end])) for end in ("mean", "low", "high")}}


def _benchmarks(group: list[dict], original: dict) -> Scores:
    """In points, for each benchmark and, where there are all, for their mean."""
    if not all("by_document" in record for record in [original, *group]):
        return {}
    changes = {}
    for task, scores in original["by_document"].items():
        own = np.mean([record["by_document"][task] for record in group], axis=0)
        changes[task] = 100 * (own - np.array(scores))
    found = {TITLES[task]: mean_interval(change) for task, change in changes.items()}
    if set(changes) == set(TITLES) - {"average"}:
        found[TITLES["average"]] = mean_of_means(list(changes.values()))
    return found


if __name__ == "__main__":
    common.run("short_text", __doc__, "smollm2", build)
