"""Loss within and beyond the training length, without training and fine-tuned (tables/extension.tex)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from core.disturbance import strategy_disturbance
from core.rope import scale as rope_scale
from eval.intervals import mean_interval
from experiments import records, scales
from tables import common

REFERENCE = "yarn"


def comparison(results: Path, scale: str, factor: float | None = None) -> list[dict]:
    """The records of the scale's comparison, all on the same text."""
    return [run for run in same_text(results, scale, factor) if _listed(run, scale)]


def factors(results: Path, scale: str) -> list[float]:
    """The factors at which there are records without training."""
    return sorted({run["factor"] for run in _untrained(results, scale)})


def same_text(results: Path, scale: str, factor: float | None = None) -> list[dict]:
    """The records without training on one text, that with most methods of the comparison and then most books.

    Each selection of pairs once, however many settings lead to it; at the least factor that was measured if none is
    given.
    """
    factor = factor or min(factors(results, scale))
    groups: dict[str, list[dict]] = {}
    for run in _untrained(results, scale):
        if run["factor"] == factor:
            groups.setdefault(records.identity(data=run["data"]), []).append(run)
    runs = max(groups.values(), key=lambda group: (sum(_listed(run, scale) for run in group), len(group[0]["data"])))
    return sorted(runs, key=_order)


def _untrained(results: Path, scale: str) -> list[dict]:
    runs = records.load(results, scale, "extension")
    return [run for run in runs if "training" not in run and "same_selection_as" not in run]


def fine_tuned(results: Path, scale: str, like: dict) -> list[dict]:
    """The fine-tuned models' records on the text of another record."""
    return sorted(
        (
            run
            for run in records.load(results, scale, "extension")
            if "training" in run and (run["data"], run["factor"]) == (like["data"], like["factor"])
        ),
        key=_order,
    )


def _order(run: dict) -> tuple:
    options = run["options"]
    return (
        list(common.METHOD_NAMES).index(run["method"]),
        *(options.get(name, 0) for name in ("attention_factor", "n_hat", "intervals")),
    )


def _listed(run: dict, scale: str) -> bool:
    return (run["method"], run["options"]) in scales.get(scale).comparison(run["factor"])


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.extension and experiments.disturbance: a table for each factor."""
    return "\n".join(_table(results, scale, factor) for factor in factors(results, scale))


def _table(results: Path, scale: str, factor: float) -> str:
    preset = scales.get(scale)
    runs = same_text(results, scale, factor)
    parts = [runs, fine_tuned(results, scale, runs[0])]
    beyond = preset.geometry.context_length // runs[0]["block"]
    table = pd.concat([_rows(part, disturbances(results, scale, part), beyond) for part in parts if part])
    books = ", ".join(rf"\emph{{{title}}}" for title in runs[0]["data"])
    tokens = runs[0]["length"] * len(runs[0]["data"])
    tuned = next((run["training"] for run in parts[1]), None)
    how = "" if tuned else " without training"
    caption = (
        rf"{preset.title}, extended from {preset.geometry.context_length // 1024}k to {runs[0]['length'] // 1024}k"
        rf"{how}: mean loss (nats per token) by position on {books} "
        rf"({tokens:,} tokens). In brackets: bootstrap 95\% intervals over blocks of {runs[0]['block']} "
        rf"tokens; $\Delta$ is paired by block. $\mathcal D$: averaged disturbance ($\times10^{{-3}}$ nat, released "
        r"convention). Best in bold"
        + (
            f", without training and fine-tuned ({tuned['steps']} steps on sequences of {tuned['length']:,} tokens), "
            rf"each of which has its own {common.METHOD_NAMES[REFERENCE]} for $\Delta$."
            if tuned
            else "."
        )
    )
    columns = "l" + "r" * (table.shape[1] - 1)
    return common.narrower(common.latex(table, caption, f"tab:extension_s={factor:g}", columns, wide=True))


def _rows(runs: list[dict], averages: list[float | None], beyond: int) -> pd.DataFrame:
    """A line for each run, the best in bold, paired with the YaRN among them from block `beyond` on."""
    reference = next((run for run in runs if (run["method"], run["options"]) == (REFERENCE, {})), None)
    names = [common.method_name(run) + (", fine-tuned" if "training" in run else "") for run in runs]
    table = {"Method": names, r"$\mathcal D$": ["--" if a is None else f"{1e3 * a:.2f}" for a in averages]}
    for i, span in enumerate(runs[0]["ranges"]):
        scores = [run["ranges"][i] for run in runs]
        best = min(score["mean"] for score in scores)
        table[f"{span['start'] // 1024}--{span['end'] // 1024}k"] = [
            common.bold(common.interval(s, 3)) if s["mean"] == best else common.interval(s, 3) for s in scores
        ]
    table[rf"$\Delta$ to {common.METHOD_NAMES[REFERENCE]} beyond $L$"] = [
        "--" if reference in (None, run) else common.interval(paired_difference(run, reference, beyond), 3)
        for run in runs
    ]
    return pd.DataFrame(table)


def disturbances(results: Path, scale: str, runs: list[dict]) -> list[float | None]:
    """Each run's averaged disturbance in nats (released convention): the record's, else that of its pairs.

    None for CLEX, whose scale follows the input.
    """
    geometry, factor = scales.get(scale).geometry, runs[0]["factor"]
    recorded = {
        (row["method"], str(row["options"])): row["average"]
        for record in records.load(results, scale, "disturbance")
        if record["factor"] == factor
        for row in record["scores"]
        if (row["precision"], row["convention"]) == ("float64", "released")
    }
    strategies = strategy_disturbance(geometry.inv_freq, geometry.context_length, factor)

    def average(run: dict) -> float | None:
        # A temperature does not move an angle.
        options = {key: value for key, value in run["options"].items() if key != "attention_factor"}
        if run["method"] == "dprope" and ("dprope", str(options)) not in recorded:
            return float(np.where(rope_scale(geometry, "dprope", factor, **options).interpolated, *strategies).mean())
        return recorded.get((run["method"], str(options)))

    return [average(run) for run in runs]


def paired_difference(run: dict, reference: dict, first_block: int) -> dict:
    """Loss minus the reference's on the same tokens, from `first_block` on, with a bootstrap interval."""
    blocks = [np.array(list(record["blocks"].values()))[:, first_block:] for record in (run, reference)]
    return mean_interval((blocks[0] - blocks[1]).ravel())


if __name__ == "__main__":
    common.run("extension", __doc__, "smollm2", build)
