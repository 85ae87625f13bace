"""Beyond the paper: n̂ without training, by every evaluation at the longest length (tables/n_hat.tex)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from eval.intervals import accuracy_interval, mean_interval
from experiments import scales
from tables import common, openllm, perplexity, ruler
from tables.benchmarks import Scores, ablated, tokens

CAPTION = (
    r"Beyond the paper: influence of $\hat n$ on TITLE without training, $s=FACTOR$, by mean loss beyond $L$ (nats "
    r"per token), sliding-window perplexity, passkeys of all lengths (\%), RULER (\%) and the mean of the Open LLM "
    r"benchmarks (\%). In brackets: 95\,\% intervals over blocks of tokens, windows, prompts and items. Best in bold."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from DPRoPE's records of every experiment in the suite that goes through n̂."""
    preset = scales.get(scale)
    factor = (preset.suite.factors if preset.suite else None) or preset.factors
    longest = tokens(round(preset.geometry.context_length * factor[0]))
    columns: list[tuple[str, str, Callable[[dict], Scores], str, Callable, int]] = [
        ("extension", "Loss", _beyond, "beyond", min, 3),
        ("perplexity", f"Perplexity, {longest}", perplexity.scores, longest, min, 2),
        ("passkey", "Passkeys", _passkeys, "all", max, 0),
        ("ruler", f"RULER, {longest}", ruler.scores, longest, max, 1),
        ("open_llm", "Open LLM", openllm.scores, "Avg.", max, 1),
    ]
    table: dict[str, dict[str, str]] = {}
    for experiment, title, scores, metric, best, digits in columns:
        found = {
            int(row.name): row.scores[metric]
            for block in ablated(results, scale, experiment, scores, "n_hat")
            if "without training" in block.title
            for row in block.rows
            if metric in row.scores
        }
        chosen = best((score["mean"] for score in found.values()), default=None)
        cells = {n_hat: common.interval(score, digits) for n_hat, score in found.items()}
        best_of = {n for n, score in found.items() if score["mean"] == chosen and len(found) > 1}
        table[title] = {n: common.bold(cells[n]) if n in best_of else cells[n] for n in sorted(found)}
    frame = pd.DataFrame(table, dtype=object).sort_index(ascending=False).fillna("no record")
    frame.insert(0, r"$\hat n$", frame.index)
    if frame.empty:
        frame.loc[0] = ["--"] + ["no record"] * len(table)
    caption = CAPTION.replace("TITLE", preset.title).replace("FACTOR", f"{factor[0]:g}")
    return common.latex(frame, caption, "tab:n_hat", "r" * len(frame.columns), wide=True)


def _beyond(record: dict) -> Scores:
    """The mean loss over all positions beyond L."""
    beyond = record["ranges"][1]["start"] // record["block"]
    return {"beyond": mean_interval(np.array(list(record["blocks"].values()))[:, beyond:].ravel())}


def _passkeys(record: dict) -> Scores:
    """Of all lengths together."""
    rows = record["scores"]["by_length"]
    found, asked = round(sum(row["mean"] * row["n"] for row in rows)), sum(row["n"] for row in rows)
    share = accuracy_interval(np.arange(asked) < found)
    return {"all": {key: 100 * share[key] for key in ("mean", "low", "high")}}


if __name__ == "__main__":
    common.run("n_hat", __doc__, "smollm2", build)
