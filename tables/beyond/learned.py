"""Scaling factors that were learned."""

from analysis.beyond import learned as records
from analysis.beyond import loss_by_position
from analysis.comparison import Row
from analysis.results import Results
from analysis.scores import Scores
from analysis.settings import lengths
from core.beyond.methods.given_factors import learned_name
from tables.benchmarks import OVER_TEXTS
from tables.kit.table import Block, Table, score_block, sentence_case, titles

_WITHIN = "Δ within L"
_BEYOND = "Δ beyond L"
CAPTION = (
    "Loss (nats per token) within and beyond L without training, and its difference Δ to factors "
    "found by gradient descent, paired by text. Factors and attention factor were learned with all "
    "weights frozen; seeds are those of the "
    f"learning. {OVER_TEXTS}"
)


def learned(results: Results) -> Table:
    """Loss of each method against that of scaling factors found by gradient descent.

    All weights were frozen. Other factors may have less loss: gradient descent ends in a valley
    near its start. A block for each factor.
    """
    results.require("learned")
    groups = records.groups(results)
    scored = {
        factor: records.scored(results, factor)
        for factor in dict.fromkeys(group.setting.factor for group in groups)
    }
    blocks = [
        _block(results, *of_factor, factor) for factor, of_factor in scored.items() if of_factor
    ]
    if not blocks:
        raise results.lacks(
            "loss of learned factors", "loss_by_position", "--method factors --file RECORD"
        )
    learning = (
        f"{sentence_case(learned_name(group.setting.method))}, s = {group.setting.factor:g}: "
        f"{records.end(group)}"
        for group in groups
    )
    return Table("learned", " ".join([CAPTION, *learning]), tuple(blocks))


def _block(results: Results, rows: dict[str, Row], least: Row, factor: float) -> Block:
    scored = sorted(
        ((name, _scores(row, least)) for name, row in rows.items()),
        key=lambda entry: entry[1]["beyond L"].mean,
    )
    reference = next(name for name, row in rows.items() if row is least)
    of = f"{results.title}, s = {factor:g}, {lengths(results, factor)}"
    title = f"{of}, Δ to: {reference}, {titles(loss_by_position.texts(least.first))}"
    return score_block(title, scored, digits=3, best=None)


def _scores(row: Row, least: Row) -> Scores:
    same = row is least
    return {
        "within L": loss_by_position.level(row, loss_by_position.WITHIN),
        "beyond L": loss_by_position.level(row),
        _WITHIN: None if same else loss_by_position.gap(row, least, loss_by_position.WITHIN),
        _BEYOND: None if same else loss_by_position.gap(row, least),
    }
