"""The paper's disturbance table: published beside recomputed (tables/disturbance.tex)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments import records, scales
from tables import common

_COLUMNS = (
    ("float32", "released", "rel. f32"),
    ("float64", "released", "rel. f64"),
    ("float64", "equation", "Eq. (7)"),
)


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.disturbance."""
    preset = scales.get(scale)
    runs = sorted(records.load(results, scale, "disturbance"), key=lambda record: record["factor"])
    # The published numbers depend on the geometry alone, so they stand beside any scale that shares it.
    comparable = preset.geometry == scales.get("llama2-7b").geometry
    published = common.paper("disturbance").set_index(["method", "factor"])["disturbance_e3"] if comparable else {}

    table: dict[tuple[str, str], list[str]] = {("", "Method"): []}
    deviation = 0.0
    for run in runs:
        length = f"{round(preset.geometry.context_length * run['factor']) // 1024}k"
        cells = {(row["precision"], row["convention"], *_key(row)): row for row in run["scores"]}
        methods = list(dict.fromkeys(_key(row) for row in run["scores"]))
        table["", "Method"] = [_name(method, by_hand) for method, by_hand in methods]
        best = {column[:2]: min(cells[*column[:2], *m]["average"] for m in methods) for column in _COLUMNS}
        if comparable:
            table[length, "paper"] = []
            for method, by_hand in methods:
                value = None if by_hand else published.get((method, run["factor"]))
                table[length, "paper"].append("--" if value is None else f"{value:.2f}")
                if value is not None:
                    ours = 1e3 * cells["float32", "released", method, by_hand]["average"]
                    deviation = max(deviation, abs(ours / value - 1))
        for precision, convention, title in _COLUMNS:
            column = []
            for key in methods:
                row = cells[precision, convention, *key]
                text = f"{1e3 * row['average']:.2f}"
                text = common.bold(text) if row["average"] == best[precision, convention] else text
                if row["method"].startswith("dprope"):
                    text += rf" {{\scriptsize({row['interpolated_dimensions']})}}"
                column.append(text)
            table[length, title] = column

    by_hand = ", ".join(
        f"{n} at {round(preset.geometry.context_length * s) // 1024}k" for s, n in sorted(preset.n_hat.items())
    )
    caption = (
        rf"Disturbance ($\times 10^{{-3}}$ nat) of rotary angle distributions, averaged over pairs, "
        rf"{preset.title} geometry ($d={preset.geometry.head_dim}$, $L={preset.geometry.context_length}$, "
        r"$b=360$). \emph{rel.}: KL$(P_L\,\|\,P_{L'})$ as in the released code, in its float32 arithmetic and counted "
        r"exactly (f64); Eq.~(7): KL$(P_{L'}\,\|\,P_L)$ with $\epsilon=10^{-8}$. In parentheses: interpolated "
        rf"dimensions $\hat n$. $\hat n$ by hand: {by_hand}."
    )
    if comparable:
        caption += rf" Largest deviation of the released convention in float32 from the paper: {deviation:.2%}."
    frame = pd.DataFrame(table)
    frame.columns = pd.MultiIndex.from_tuples(frame.columns)
    return common.latex(
        frame, caption.replace("%", r"\%"), "tab:disturbance", "l" + "r" * (frame.shape[1] - 1), wide=True
    )


def _key(row: dict) -> tuple[str, bool]:
    """The method, and whether n̂ was set by hand."""
    return row["method"], "n_hat" in row["options"]


def _name(method: str, by_hand: bool) -> str:
    name = common.METHOD_NAMES[method]
    return name if method != "dprope" else f"{name} ($\\hat n$ by hand)" if by_hand else f"{name} ($t=0$)"


if __name__ == "__main__":
    common.run("disturbance", __doc__, "llama2-7b", build)
