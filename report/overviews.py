"""The tables with which the pages of the repository's own models begin: several measures of a few
methods side by side, whose headings are in the templates."""

from collections.abc import Sequence

from analysis import disturbance
from analysis.scores import number
from analysis.settings import BASELINE
from report.model_view import View, offered, shown, table
from tables.kit.markdown import text
from tables.kit.table import NONE


@offered
def overview(
    view: View,
    heading: str,
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    trained: bool = False,
    factor: float | None = None,
) -> str:
    """Several measures of a few rows; the original is not fine-tuned.

    Args:
        columns: each one's words, and what :func:`_measured` measures.
    """
    rows = []
    for name in names:
        tuned = trained and name != "original"
        cells = (_measured(view, name, tuned, factor, *measure) for _, *measure in columns)
        title = name if tuned == trained else f"{name}, not fine-tuned"
        rows.append((title, *cells))
    return table((heading, *(words for words, *_ in columns)), rows)


def _measured(
    view: View, name: str, trained: bool, factor: float | None, what: str, *metrics: str
) -> str:
    """A row's disturbance, its passkeys of some lengths, its loss in whole texts minus YaRN's, or
    its score of an experiment."""
    if what == "disturbance":
        return number(view.disturbance(name, factor), 1)
    if what == "passkey":
        return view.passkeys(name, *metrics, trained=trained, factor=factor)
    if what != "loss minus YaRN's":
        return shown(view.score(what, name, *metrics, trained, factor), 1)
    if name == BASELINE:
        return NONE
    return shown(view.gap("perplexity", name, BASELINE, *metrics, trained, factor), 3, True)


def published_disturbances() -> str:
    """LLaMA2's: the paper's disturbances beside both ways of computing them."""
    header = ("s", "method", "paper", "as the released code, float32", "by equation (7), ε = 10⁻⁸")
    as_released = disturbance.recomputed(disturbance.FLOAT32)
    exact = disturbance.recomputed(disturbance.EQUATION)
    rows = [
        (
            f"{setting.factor:g}",
            text(setting.name),
            number(printed, 2),
            number(ours, 2),
            number(equation, 2),
        )
        for (setting, printed, ours), (_, _, equation) in zip(as_released, exact)
    ]
    return table(header, rows)
