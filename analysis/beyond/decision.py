"""What the fine-tunes at L' decide, by a rule that was fixed before any of them was scored.

The number is the loss on tokens L to L' of DPRoPE at the paper's n̂ minus YaRN's, per book, with
Student's 95 % interval over books.
"""

from __future__ import annotations

from analysis.scores import Score

MATTERS = 0.010  # nats per token: a third of what the paper's own perplexities differ by, 0.031

BETTER = "DPRoPE extends better, fine-tuned"
WORSE = "YaRN extends better, after 1 M tokens"
SLIGHTLY_WORSE = "YaRN is ahead by less than matters"
IMMATERIAL = "after training the choice is immaterial"
UNDECIDED = "not decided"


def outcome(difference: Score) -> str:
    """The words for n̂ minus YaRN beyond L; a score without an interval decides nothing."""
    if difference.low is None:
        return UNDECIDED
    if difference.high < 0:
        return BETTER
    if difference.low >= MATTERS:
        return WORSE
    if difference.low > 0:
        return SLIGHTLY_WORSE
    if max(-difference.low, difference.high) <= MATTERS:
        return IMMATERIAL
    return UNDECIDED
