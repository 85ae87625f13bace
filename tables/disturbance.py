"""Table 3: disturbance of each method, published and recomputed."""

from __future__ import annotations

from analysis import disturbance, published
from analysis.disturbance import FLOAT32, WAYS
from analysis.results import Results
from analysis.settings import Setting, extended_length, tokens
from core import rope
from tables.kit.table import NONE, Block, Cell, Table, number, sentence_case

_TITLES = dict(zip(WAYS, ("code, f32", "code, f64", "Eq. (7)")))


def build(results: Results) -> Table:
    """Computed from the model's geometry, beside the paper's numbers if it is the geometry of the paper's models."""
    model, geometry = results.model, results.model.geometry
    printed = published.disturbance() if geometry == published.GEOMETRY else {}
    lengths = {factor: tokens(extended_length(results, factor)) for factor in FACTORS}
    header, columns = ["Method"], []
    by_name = {_name(setting): setting for setting in disturbance.settings(results, FACTORS[0])}
    rows = [[Cell(sentence_case(name))] for name in by_name]
    for factor in FACTORS:
        settings = disturbance.settings(results, factor)
        if printed:
            header.append(f"{lengths[factor]}, paper")
            for row, setting in zip(rows, settings):
                value = None if setting.options else printed.get((setting.method, factor))
                row.append(Cell(NONE if value is None else number(value, 2)))
        for way in WAYS:
            header.append(f"{lengths[factor]}, {_TITLES[way]}")
            moved = [disturbance.of(geometry, setting, way) for setting in settings]
            least = min(each.average for each in moved)
            for row, setting, each in zip(rows, settings, moved):
                count = f"({each.interpolated})" if rope.METHODS[setting.method].by_disturbance else ""
                row.append(Cell(number(each.average, 2), count, each.average == least))
    n_hats = ", ".join(f"{model.n_hat[s]} at {lengths[s]}" for s in FACTORS if s in model.n_hat)
    caption = (
        f"Disturbance (10⁻³ nat) of the distribution of a pair's angles, averaged over pairs, for {model.title}'s "
        f"geometry (d = {geometry.head_dim}, L = {geometry.context_length}, b = 360). “code” is KL(P_L ‖ P_L'), as "
        "the released code has it: in its float32 arithmetic (f32), and counted exactly (f64). “Eq. (7)” is "
        "KL(P_L' ‖ P_L) with ε = 10⁻⁸. Parentheses hold the number of interpolated dimensions, if DPRoPE chooses them."
        + (f" The paper's n̂: {n_hats}." if n_hats else "")
    )
    if printed:
        largest = number(100 * max(disturbance.deviations(geometry, FLOAT32)), 2)
        caption += f" Largest deviation of the released convention in float32 from the paper: {largest} %."
    return Table("disturbance", caption, (Block("", tuple(header), tuple(map(tuple, rows))),), "Table 3")


FACTORS = (2.0, 4.0)  # of the model's file


def _name(setting: Setting) -> str:
    return "DPRoPE (the paper's n̂)" if setting.option("n_hat") else setting.name
