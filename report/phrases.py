"""Findings in words: the numbers of a fact, and what they decide."""

from __future__ import annotations

from analysis.claims.finding import Fact, Finding, Quantity
from analysis.hypothesis_tests import UNDECIDED
from tables.kit.table import interval, number


def finding_lines(finding: Finding) -> list[str]:
    """What is measured, what is decided together, the margin, and every fact."""
    lines = [f"{finding.about[:1].upper()}{finding.about[1:]}."] if finding.about else []
    if finding.family:
        counts = " × ".join(f"{count} {name}" for count, name in finding.family)
        lines.append(f"Holm's correction covers {counts}, and the intervals have its levels.")
    if finding.margin:
        lines.append(f"Up to {_value(finding.margin)} counts as no difference: {finding.margin.name}.")
    return [*lines, *map(fact_line, finding.facts)]


def fact_line(fact: Fact) -> str:
    """The numbers of a fact and what they decide, in one line."""
    start = [f"s = {fact.factor:g}"] if fact.factor is not None else []
    start += [fact.metric] if fact.metric else []
    numbers = "; ".join(_quantity(quantity) for quantity in fact.quantities)
    line = f"{', '.join(start)}: {numbers}" if start else numbers
    if not fact.decision:
        return line
    return f"{line}: {fact.verdict}. {papers_effect(fact)}".rstrip()


def papers_effect(fact: Fact) -> str:
    """Of an undecided fact, whether the paper's own effect is as possible; else empty."""
    decision, shown = fact.decision, fact.quantities[-1]
    if not decision or fact.verdict != UNDECIDED or not decision.effect:  # an effect of 0 is no difference
        return ""
    held = "also holds" if decision.holds_effect else "does not hold"
    return f"The interval {held} the paper's {number(decision.effect, shown.digits, shown.signed)}."


def _quantity(quantity: Quantity) -> str:
    return f"{quantity.name} {_value(quantity)}".strip()


def _value(quantity: Quantity) -> str:
    score, digits = quantity.score, quantity.digits
    parts = (number(score.mean, digits, quantity.signed), interval(score, digits), quantity.unit)
    return " ".join(part for part in parts if part)
