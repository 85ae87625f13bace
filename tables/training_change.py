"""What fine-tuning changes: fine-tuned minus untrained."""

from __future__ import annotations

from analysis import paired
from analysis.paired import AVERAGE, LOSS, WHOLE
from analysis.results import NotMeasured, Results
from tables.kit.model import Table, noted, score_block

CAPTION = (
    "What fine-tuning changes, fine-tuned minus untrained: the loss beyond L (nats per token) on the beginnings of "
    "books, paired by block, and on whole texts, paired by window; the average of the Open LLM benchmarks (points), "
    "paired by item. Brackets hold bootstrap 95 % intervals. With several training seeds, each sample is averaged "
    "over them first."
)


def build(results: Results) -> Table:
    """From the records of experiments.extension, .perplexity --by-position and .open_llm."""
    changes = paired.training_changes(results)
    if not changes:
        raise NotMeasured(
            f"no setting both fine-tuned and untrained under {results.folder / results.scale.name}; fine-tune one with "
            "`python -m experiments.finetune`."
        )
    blocks = []
    for change in changes:
        rows = [(setting.name, scores) for setting, scores in change.by_setting.items()]
        title = f"{results.scale.title}, s = {change.factor:g}"
        digits = {LOSS: 3, WHOLE: 3, AVERAGE: 1}
        blocks.append(score_block(title, rows, digits=digits, best=None, signed=[*digits]))
    left_out = [record for change in changes for record in change.left_out]
    return noted(Table("training_change", CAPTION, tuple(blocks)), left_out)
