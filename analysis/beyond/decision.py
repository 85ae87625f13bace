"""What differences of loss and of keys decide, by rules that were fixed before they were measured.

The number is that of tokens, or of keys, beyond L, per book, with Student's 95 % interval over
books and, where there are several, seeds.
"""

from __future__ import annotations

from analysis.scores import Score
from eval.beyond.ranking import KEYS_MATTER, MATTERS

BETTER = "DPRoPE extends better, fine-tuned"
WORSE = "YaRN extends better, after 1 M tokens"
SLIGHTLY_WORSE = "YaRN is ahead by less than matters"
IMMATERIAL = "after training the choice is immaterial"

SLIGHT = "differs by less than matters"
NO_MATTER = "no difference that matters"

UNDECIDED = "not decided"


def by_loss(difference: Score) -> str:
    """The words for the loss of fine-tuned n̂ minus fine-tuned YaRN's; without an interval nothing
    is decided."""
    if difference.low is None:
        return UNDECIDED
    if difference.high < 0:
        return BETTER
    if difference.low >= MATTERS:
        return WORSE
    if not _within(difference, MATTERS):
        return UNDECIDED
    return SLIGHTLY_WORSE if difference.low > 0 else IMMATERIAL


def by_keys(difference: Score, ours: str = "DPRoPE", other: str = "YaRN") -> str:
    """The words for the nats a key of one setting minus another's; without an interval nothing is
    decided."""
    if difference.low is None:
        return UNDECIDED
    if _within(difference, KEYS_MATTER):
        return NO_MATTER if difference.holds_zero else SLIGHT
    if difference.high < 0:
        return f"{ours} retrieves better"
    if difference.low >= KEYS_MATTER:
        return f"{other} retrieves better"
    return UNDECIDED


def _within(difference: Score, margin: float) -> bool:
    return -margin <= difference.low and difference.high <= margin
