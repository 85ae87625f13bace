"""The tables with which the pages of the repository's own models begin: several measures of a few
methods side by side."""

from collections.abc import Sequence

from analysis import disturbance
from analysis.scores import number
from analysis.settings import tokens
from report.model_view import BASELINE, NONE, View, offered, shown, table
from tables.kit.markdown import text


@offered
def passkeys_found(view: View, name: str, lengths: Sequence[int] = ()) -> str:
    """How many passkeys a row without training finds at some lengths in tokens, or at all."""
    found = [
        share
        for (length, _), share in view.passkeys_by_place(name).items()
        if not lengths or length in lengths
    ]
    return f"{sum(found):.0f} of {len(found)}"


@offered
def side_by_side(view: View, names: Sequence[str]) -> str:
    """SmolLM2's: what each row scores without training at s = 2."""
    header = (
        "s = 2, without training",
        "perplexity, 16k",
        "Open LLM",
        "RULER",
        "passkeys within L",
        "passkeys beyond L",
    )
    rows = []
    for name in names:
        scores = (
            view.score("perplexity", name, "16k"),
            view.score("open_llm", name, "Avg."),
            view.score("ruler", name, "Avg."),
        )
        found = (passkeys_found(view, name, at) for at in ((4096, 8192), (12288, 16384)))
        rows.append((name, *(shown(score, 1) for score in scores), *found))
    return table(header, rows)


@offered
def untrained(view: View, names: Sequence[str], factor: int) -> str:
    """tiny's: disturbance, perplexity and passkeys of each row without training."""
    length = view.results.context_length * factor
    header = (
        f"s = {factor}, without training",
        "disturbance, 10⁻³ nat",
        f"perplexity, {tokens(view.results.context_length)}",
        f"perplexity, {tokens(length)}",
        f"loss at {tokens(length)} minus YaRN's, nats per token",
        f"passkeys, {tokens(length)}",
    )
    rows = []
    for name in names:
        within, beyond = (
            view.score("perplexity", name, tokens(at), False, factor)
            for at in (view.results.context_length, length)
        )
        gap = NONE
        if name != BASELINE:
            paired = view.gap("perplexity", name, BASELINE, tokens(length), False, factor)
            gap = shown(paired, 3, True)
        moved = number(view.disturbance(name, factor), 1)
        found = view.passkeys(name, length, False, factor)
        rows.append((name, moved, shown(within, 1), shown(beyond, 1), gap, found))
    return table(header, rows)


@offered
def fine_tuned(view: View, names: Sequence[str], factor: int) -> str:
    """tiny's: what each row scores fine-tuned, beside the original as it is."""
    context = view.results.context_length
    at = tokens(context * factor)
    metrics = {
        "LongBench-E miniature, > L": ("longbench_e", "Avg.>L"),
        "Open LLM miniature": ("open_llm", "Avg."),
        f"RULER, {at}": ("ruler", at),
        f"perplexity, {at}": ("perplexity", at),
    }
    header = (
        f"s = {factor}, fine-tuned",
        *metrics,
        f"passkeys, {tokens(context)}",
        f"passkeys, {at}",
    )
    rows = []
    for name in names:
        trained = name != "original"
        scores = (view.score(of, name, each, trained, factor) for of, each in metrics.values())
        found = (view.passkeys(name, each, trained, factor) for each in (context, context * factor))
        title = name if trained else f"{name}, not fine-tuned"
        rows.append((title, *(shown(score, 1) for score in scores), *found))
    return table(header, rows)


def published_disturbances() -> str:
    """LLaMA2's: the paper's disturbances beside both ways of computing them."""
    header = "s", "method", "paper", "as the released code, float32", "by equation (7), ε = 10⁻⁸"
    exact = disturbance.recomputed(disturbance.EQUATION)
    rows = []
    for (setting, printed, ours), (_, _, equation) in zip(
        disturbance.recomputed(disturbance.FLOAT32), exact
    ):
        values = (number(each, 2) for each in (printed, ours, equation))
        rows.append((f"{setting.factor:g}", text(setting.name), *values))
    return table(header, rows)
