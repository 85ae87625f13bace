"""Table 3: disturbance of each method, published and recomputed."""

from __future__ import annotations

from analysis import disturbance
from analysis.disturbance import FLOAT32, WAYS, Disturbed
from analysis.results import Results
from analysis.settings import extended_length, tokens
from tables.kit.table import NO_RECORD, NONE, Block, Cell, Table, number, sentence_case

_TITLES = dict(zip(WAYS, ("code, f32", "code, f64", "Eq. (7)")))


def build(results: Results) -> Table:
    """From the records of experiments.disturbance.

    Raises:
        NotMeasured: no record of a registered method.
    """
    rows, beside = disturbance.rows(results), disturbance.comparable(results)
    if not rows:
        raise results.lacks("disturbance of a registered method", "disturbance")
    factors = sorted({factor for row in rows for factor in row.moved})
    columns = [(factor, way) for factor in factors for way in ([None] if beside else []) + list(WAYS)]
    least = {column: _least(rows, *column) for column in columns if column[1]}
    lengths = {factor: tokens(extended_length(results, factor)) for factor in factors}
    header = ("Method", *(f"{lengths[factor]}, {_TITLES.get(way, 'paper')}" for factor, way in columns))
    made = tuple(
        (Cell(sentence_case(row.name)), *(_cell(row, *column, least.get(column)) for column in columns)) for row in rows
    )
    caption = _caption(results, factors)
    if beside:
        largest = number(100 * max(disturbance.deviations(rows, FLOAT32), default=0.0), 2)
        caption += f" Largest deviation of the released convention in float32 from the paper: {largest} %."
    return Table("disturbance", caption, (Block("", header, made),), "Table 3")


def _least(rows: list[Disturbed], factor: float, way: tuple[str, str]) -> float | None:
    return min((row.moved[factor][way].average for row in rows if way in row.moved.get(factor, {})), default=None)


def _cell(row: Disturbed, factor: float, way: tuple[str, str] | None, least: float | None) -> Cell:
    if way is None:
        return Cell(number(row.published[factor], 2) if factor in row.published else NONE)
    moved = row.moved.get(factor, {}).get(way)
    if moved is None:
        return Cell(NO_RECORD)
    return Cell(number(moved.average, 2), f"({moved.interpolated})" if row.chosen else "", moved.average == least)


def _caption(results: Results, factors: list[float]) -> str:
    model = results.model
    papers = ", ".join(
        f"{model.n_hat[s]} at {tokens(extended_length(results, s))}" for s in factors if s in model.n_hat
    )
    return (
        f"Disturbance (10⁻³ nat) of the distribution of a pair's angles, averaged over pairs, for {model.title}'s "
        f"geometry (d = {model.geometry.head_dim}, L = {model.context_length}, b = 360). “code” is KL(P_L ‖ P_L'), as "
        "the released code has it: in its float32 arithmetic (f32), and counted exactly (f64). “Eq. (7)” is "
        "KL(P_L' ‖ P_L) with ε = 10⁻⁸. Parentheses hold the number of interpolated dimensions, if DPRoPE chooses them."
        + (f" The paper's n̂: {papers}." if papers else "")
    )
