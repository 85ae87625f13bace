"""Table 3: disturbance of each method, published and recomputed."""

from __future__ import annotations

from analysis import disturbance, published
from analysis.disturbance import CONVENTIONS, FLOAT32
from analysis.results import Results
from analysis.settings import Setting, extended_length, tokens
from core import rope
from tables.kit.table import NONE, Block, Cell, Table, number, sentence_case

_TITLES = dict(zip(CONVENTIONS, ("code, f32", "code, f64", "Eq. (7)")))


def build(results: Results) -> Table:
    """Computed from the model's geometry, beside the paper's numbers if it is the geometry of the paper's models."""
    geometry, factors = results.model.geometry, disturbance.factors(results)
    printed = published.disturbance() if geometry == published.GEOMETRY else {}
    header: list[str] = ["Method"]
    rows: dict[str, list[Cell]] = {}
    for factor in factors:
        length = tokens(extended_length(results, factor))
        settings = {_name(setting): setting for setting in disturbance.settings(results, factor)}
        for name in settings:
            rows.setdefault(name, [Cell(sentence_case(name)), *[Cell(NONE)] * (len(header) - 1)])
        if printed:
            header.append(f"{length}, paper")
            for name, cells in rows.items():
                cells.append(_published(settings.get(name), printed))
        for convention in CONVENTIONS:
            header.append(f"{length}, {_TITLES[convention]}")
            computed = {name: disturbance.compute(geometry, each, convention) for name, each in settings.items()}
            least = min(each.average for each in computed.values())
            for name, cells in rows.items():
                cells.append(_computed(settings.get(name), computed.get(name), least))
    block = Block("", tuple(header), tuple(map(tuple, rows.values())))
    return Table("disturbance", _caption(results, factors, bool(printed)), (block,), "Table 3")


def _published(setting: Setting | None, printed: dict[tuple[str, float], float]) -> Cell:
    value = None if setting is None or setting.options else printed.get((setting.method, setting.factor))
    return Cell(NONE if value is None else number(value, 2))


def _computed(setting: Setting | None, computed: disturbance.Disturbance | None, least: float) -> Cell:
    if setting is None or computed is None:
        return Cell(NONE)
    chooses = rope.METHODS[setting.method].by_disturbance
    count = f"({computed.interpolated})" if chooses else ""
    return Cell(number(computed.average, 2), count, computed.average == least)


def _name(setting: Setting) -> str:
    """One row for all factors, whose n̂ differ."""
    return f"{rope.METHODS[rope.PROPOSED].title} (the paper's n̂)" if setting.option("n_hat") else setting.name


def _caption(results: Results, factors: list[float], with_paper: bool) -> str:
    model, geometry = results.model, results.model.geometry
    caption = (
        f"Disturbance (10⁻³ nat) of the distribution of a pair's angles, averaged over pairs, for {model.title}'s "
        f"geometry (d = {geometry.head_dim}, L = {geometry.context_length}, b = 360). “code” is KL(P_L ‖ P_L'), as "
        "the released code has it: in its float32 arithmetic (f32), and counted exactly (f64). “Eq. (7)” is "
        "KL(P_L' ‖ P_L) with ε = 10⁻⁸. Parentheses hold the number of interpolated dimensions, if DPRoPE chooses them."
    )
    n_hats = [f"{model.n_hat[s]} at {tokens(extended_length(results, s))}" for s in factors if s in model.n_hat]
    if n_hats:
        caption += f" The paper's n̂: {', '.join(n_hats)}."
    if with_paper:
        largest = number(100 * max(disturbance.deviations(geometry, FLOAT32)), 2)
        caption += f" Largest deviation of the released convention in float32 from the paper: {largest} %."
    return caption
