"""Extension without training: loss within and beyond the training length (tables/extension.tex)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from eval.intervals import mean_interval
from experiments import records, scales
from tables import common

REFERENCE = "yarn"


def comparison(results: Path, scale: str) -> list[dict]:
    """The records of the scale's comparison, all on the same text."""
    return [run for run in same_text(results, scale) if _listed(run, scale)]


def same_text(results: Path, scale: str) -> list[dict]:
    """All records on one text: that with most methods of the comparison, and then with the most books."""
    groups: dict[str, list[dict]] = {}
    for run in records.load(results, scale, "extension"):
        groups.setdefault(records.identity(data=run["data"], factor=run["factor"]), []).append(run)
    runs = max(groups.values(), key=lambda group: (sum(_listed(run, scale) for run in group), len(group[0]["data"])))
    order = list(common.METHOD_NAMES)
    return sorted(
        runs,
        key=lambda run: (
            order.index(run["method"]),
            run["options"].get("attention_factor", 0),
            run["options"].get("n_hat", 0),
        ),
    )


def _listed(run: dict, scale: str) -> bool:
    return (run["method"], run["options"]) in scales.get(scale).comparison(run["factor"])


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.extension and experiments.disturbance."""
    preset = scales.get(scale)
    runs = same_text(results, scale)
    factor = runs[0]["factor"]
    disturbance = {
        _pairs(row): row["average"]
        for record in records.load(results, scale, "disturbance")
        if record["factor"] == factor
        for row in record["scores"]
        if (row["precision"], row["convention"]) == ("float64", "released")
    }
    reference = next((run for run in runs if (run["method"], run["options"]) == (REFERENCE, {})), None)

    table = {"Method": [common.method_name(run) for run in runs]}
    averages = [disturbance.get(_pairs(run)) for run in runs]
    table[r"$\mathcal D$"] = ["--" if a is None else f"{1e3 * a:.2f}" for a in averages]
    for i, span in enumerate(runs[0]["ranges"]):
        scores = [run["ranges"][i] for run in runs]
        best = min(score["mean"] for score in scores)
        table[f"{span['start'] // 1024}--{span['end'] // 1024}k"] = [
            common.bold(common.interval(s, 3)) if s["mean"] == best else common.interval(s, 3) for s in scores
        ]
    if reference is not None:
        beyond = preset.geometry.context_length // reference["block"]
        table[rf"$\Delta$ to {common.METHOD_NAMES[REFERENCE]} beyond $L$"] = [
            "--" if run is reference else common.interval(paired_difference(run, reference, beyond), 3) for run in runs
        ]
    books = ", ".join(rf"\emph{{{title}}}" for title in runs[0]["data"])
    tokens = runs[0]["length"] * len(runs[0]["data"])
    caption = (
        rf"{preset.title}, extended from {preset.geometry.context_length // 1024}k to {runs[0]['length'] // 1024}k "
        rf"without training: mean loss (nats per token) by position on {books} "
        rf"({tokens:,} tokens). In brackets: bootstrap 95\% intervals over blocks of {runs[0]['block']} "
        rf"tokens; $\Delta$ is paired by block. $\mathcal D$: averaged disturbance ($\times10^{{-3}}$ nat, released "
        r"convention). Best in bold."
    )
    return common.latex(pd.DataFrame(table), caption, "tab:extension", "l" + "r" * (len(table) - 1), wide=True)


def _pairs(run: dict) -> tuple:
    """What the choice of pairs depends on; a temperature does not change them."""
    options = {key: value for key, value in run["options"].items() if key != "attention_factor"}
    return run["method"], str(options)


def paired_difference(run: dict, reference: dict, first_block: int) -> dict:
    """Loss minus the reference's on the same tokens, from `first_block` on, with a bootstrap interval."""
    blocks = [np.array(list(record["blocks"].values()))[:, first_block:] for record in (run, reference)]
    return mean_interval((blocks[0] - blocks[1]).ravel())


if __name__ == "__main__":
    common.run("extension", __doc__, "smollm2", build)
