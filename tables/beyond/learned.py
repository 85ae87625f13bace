"""Loss of each method against that of learned scaling factors.

The factors are learned with all weights frozen, so they show what a choice of frequencies can reach.
"""

from __future__ import annotations

from analysis.beyond import learned, loss_by_position
from analysis.comparison import Row
from analysis.results import NotMeasured, Results
from analysis.scores import Scores
from analysis.settings import extended_length, tokens
from tables.kit.table import Block, Table, score_block

_WITHIN, _BEYOND = "Δ within L", "Δ beyond L"
CAPTION = (
    "Loss (nats per token) within and beyond L without training, and its difference Δ to learned factors. Factors "
    "and temperature were learned with all weights frozen, so they show how far a choice of both can get. Brackets "
    "hold bootstrap 95 % intervals. Δ is paired by block of tokens, and seeds are averaged."
)


def build(results: Results) -> Table:
    """From the records of learned factors and of loss by position: a block for each factor."""
    groups = learned.groups(results)
    blocks, notes = [], []
    for factor in dict.fromkeys(group.factor for group in groups):
        found = learned.scored(results, factor)
        if found and found.bound:
            blocks.append(_block(results, found, factor))
    for group in groups:
        end = "had stopped falling" if group.converged else "was still falling, so this is no bound"
        steps = " and ".join(dict.fromkeys(f"{run['steps_made']:,}" for run in group.runs))
        seeds = "one seed" if len(group.runs) == 1 else f"{len(group.runs)} seeds"
        notes.append(f"{group.name}, s = {group.factor:g}: {seeds}, {steps} steps. The held-out loss {end}.")
    if not blocks:
        raise NotMeasured(
            f"no learned factors were scored under {results.folder / results.model.name}; score them with "
            "`python -m experiments.beyond.loss_by_position --method factors --file RECORD`."
        )
    return Table("learned", CAPTION, tuple(blocks), notes=tuple(notes))


def _block(results: Results, found: learned.Scored, factor: float) -> Block:
    bound = found.rows[found.bound]
    rows = {name: _scores(row, bound) for name, row in found.rows.items()}
    order = sorted(rows, key=lambda name: rows[name]["beyond L"].mean)
    metrics = list(rows[order[0]])
    length = tokens(extended_length(results, factor))
    lengths = f"{tokens(results.model.context_length)} to {length}"
    title = f"{results.model.title}, s = {factor:g}, {lengths}, Δ to: {found.bound}"
    scored = [(name, rows[name]) for name in order]
    return score_block(title, scored, digits=3, best=dict.fromkeys(metrics), signed=metrics[2:])


def _scores(row: Row, bound: Row) -> Scores:
    same = row is bound
    return {
        "within L": learned.level(row, beyond=False),
        "beyond L": learned.level(row),
        _WITHIN: None if same else loss_by_position.gap(row, bound, beyond=False),
        _BEYOND: None if same else loss_by_position.gap(row, bound),
    }
