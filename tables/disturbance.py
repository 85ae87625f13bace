"""Table 3: disturbance of each method, published and recomputed."""

from analysis import disturbance, published
from analysis.disturbance import CONVENTIONS, FLOAT32
from analysis.results import Results
from analysis.settings import Setting, extended_length, tokens
from core import rope
from tables.kit.table import NONE, Block, Cell, Table, number, sentence_case

_TITLES = dict(zip(CONVENTIONS, ("code, f32", "code, f64", "Eq. (7)")))


def build(results: Results) -> Table:
    """Computed from the model's geometry, beside the paper's numbers if it is the geometry of the
    paper's models."""
    geometry = results.model.geometry
    factors = disturbance.factors(results)
    printed = published.disturbance() if geometry == published.GEOMETRY else {}
    columns: dict[str, dict[str, Cell]] = {}  # by header and row
    names: dict[str, None] = {}
    for factor in factors:
        length = tokens(extended_length(results, factor))
        settings = {_name(setting): setting for setting in disturbance.settings(results, factor)}
        names |= dict.fromkeys(settings)
        if printed:
            columns[f"{length}, paper"] = {
                name: Cell(number(printed[setting.method, factor], 2))
                for name, setting in settings.items()
                if not setting.options and (setting.method, factor) in printed
            }
        for convention, title in _TITLES.items():
            computed = {
                name: disturbance.compute(geometry, each, convention)
                for name, each in settings.items()
            }
            least = min(each.average for each in computed.values())
            column = columns[f"{length}, {title}"] = {}
            for name, each in computed.items():
                count = (
                    f"({each.interpolated})"
                    if rope.METHODS[settings[name].method].by_disturbance
                    else ""
                )
                column[name] = Cell(number(each.average, 2), count, each.average == least)
    rows = [
        (Cell(sentence_case(n)), *(column.get(n, Cell(NONE)) for column in columns.values()))
        for n in names
    ]
    block = Block("", ("Method", *columns), tuple(rows))
    return Table("disturbance", _caption(results, factors, bool(printed)), (block,), "Table 3")


def _name(setting: Setting) -> str:
    """One row for all factors, whose n̂ differ."""
    return (
        f"{rope.METHODS[rope.PROPOSED].title} (the paper's n̂)"
        if setting.option("n_hat")
        else setting.name
    )


def _caption(results: Results, factors: list[float], with_paper: bool) -> str:
    model = results.model
    geometry = results.model.geometry
    caption = (
        f"Disturbance (10⁻³ nat) of the distribution of a pair's angles, averaged over pairs, for "
        f"{model.title}'s "
        f"geometry (d = {geometry.head_dim}, L = {geometry.context_length}, b = 360). “code” is "
        f"KL(P_L ‖ P_L'), as "
        "the released code has it: in its float32 arithmetic (f32), and counted exactly (f64). "
        "“Eq. (7)” is "
        "KL(P_L' ‖ P_L) with ε = 10⁻⁸. Parentheses hold the number of interpolated dimensions, if "
        "DPRoPE chooses them."
    )
    n_hats = [
        f"{model.n_hat[s]} at {tokens(extended_length(results, s))}"
        for s in factors
        if s in model.n_hat
    ]
    if n_hats:
        caption += f" The paper's n̂: {', '.join(n_hats)}."
    if with_paper:
        largest = number(100 * max(disturbance.deviations(FLOAT32)), 2)
        caption += (
            f" Largest deviation of the released convention in float32 from the paper: {largest} %."
        )
    return caption
