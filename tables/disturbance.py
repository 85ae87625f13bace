"""Disturbances, which follow from a model's geometry alone."""

from analysis import published
from analysis.disturbance import (
    CONVENTIONS,
    FLOAT32,
    compute,
    deviations,
    factors,
    of_paper,
    settings,
)
from analysis.results import Results
from analysis.scores import number
from analysis.settings import extended_length, of_all_factors
from core import rope
from core.setting import Setting, tokens
from tables.kit.table import NONE, Block, Cell, Table, sentence_case

_TITLES = dict(zip(CONVENTIONS, ("code, f32", "code, f64", "Eq. (7)")))


def disturbance(results: Results) -> Table:
    """Table 3: disturbance of each method, published and recomputed.

    The paper's numbers are those of its models' geometry, and stand beside no other's.
    """
    geometry = results.geometry
    printed = of_paper() if geometry == published.GEOMETRY else {}
    columns: dict[str, dict[str, Cell]] = {}  # by header and row
    names: dict[str, Setting] = {}
    for factor in factors(results):
        length = tokens(extended_length(results, factor))
        shown = {of_all_factors(setting): setting for setting in settings(results, factor)}
        names |= shown
        if printed:
            columns[f"{length}, paper"] = {
                name: Cell(number(printed[setting.method, factor], 2))
                for name, setting in shown.items()
                if not setting.options and (setting.method, factor) in printed
            }
        for convention, title in _TITLES.items():
            computed = {
                name: compute(geometry, setting, convention) for name, setting in shown.items()
            }
            least = min(each.average for each in computed.values())
            columns[f"{length}, {title}"] = {
                name: Cell(
                    number(each.average, 2),
                    f"({each.interpolated})"
                    if rope.METHODS[shown[name].method].by_disturbance
                    else "",
                    each.average == least,
                )
                for name, each in computed.items()
            }
    rows = [
        (
            Cell(sentence_case(name)),
            *(column.get(name, Cell(NONE)) for column in columns.values()),
        )
        for name in names
    ]
    blocks = [Block("", ("Method", *columns), rows)]
    return Table("disturbance", _caption(results, bool(printed)), blocks, "Table 3")


def _caption(results: Results, with_paper: bool) -> str:
    caption = (
        "Disturbance (10⁻³ nat) of the distribution of a pair's angles, averaged over pairs, for "
        f"{results.title}'s geometry (d = {results.geometry.head_dim}, "
        f"L = {results.geometry.context_length}, b = 360). “code” is KL(P_L ‖ P_L'), as the "
        "released code has it: in its float32 arithmetic (f32), and counted exactly (f64). "
        "“Eq. (7)” is KL(P_L' ‖ P_L) with ε = 10⁻⁸. Parentheses hold the number of interpolated "
        "dimensions of DPRoPE."
    )
    n_hats = [
        f"{results.n_hat[factor]} at {tokens(extended_length(results, factor))}"
        for factor in factors(results)
        if factor in results.n_hat
    ]
    if n_hats:
        caption += f" The paper's n̂: {', '.join(n_hats)}."
    if with_paper:
        largest = number(100 * max(deviations(FLOAT32)), 2)
        caption += (
            f" Largest deviation of the released convention in float32 from the paper: {largest} %."
        )
    return caption
