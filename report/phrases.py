"""Findings in words: the numbers of a fact, what they decide, and what would decide where they do not."""

from __future__ import annotations

from analysis.decisions import UNDECIDED, Needed
from analysis.findings import Fact, Finding, Quantity
from tables.kit.model import interval, number


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
    return " ".join([f"{line}: {fact.verdict}.", *(power_sentences(fact) if fact.verdict == UNDECIDED else ())])


def power_sentences(fact: Fact) -> list[str]:
    """Of an undecided fact: whether the paper's own effect is as possible, and what would decide."""
    decision, shown = fact.decision, fact.quantities[-1]
    no_difference = decision.effect == 0
    effect = "a difference of zero" if no_difference else "the observed difference"
    found = []
    if decision.effect is not None and not no_difference:
        effect = f"the paper's {number(decision.effect, shown.digits, shown.signed)}"
        found.append(f"The interval {'also holds' if decision.holds_effect else 'does not hold'} {effect}.")
    if fact.needed:
        found.append(f"{_needed(fact.needed, fact.counted)} would decide if {effect} were true.")
    else:
        found.append("No number of samples is known to decide.")
    return found


def _needed(needed: Needed, counted: str) -> str:
    parts = [(needed.samples, counted), (needed.seeds, "seeds")]
    return "About " + " and ".join(f"{_rounded(count):,} {name}" for count, name in parts if count)


def _rounded(count: int) -> int:
    """To two digits, upward."""
    unit = 10 ** max(len(str(count)) - 2, 0)
    return -(-count // unit) * unit


def _quantity(quantity: Quantity) -> str:
    return f"{quantity.name} {_value(quantity)}".strip()


def _value(quantity: Quantity) -> str:
    score, digits = quantity.score, quantity.digits
    parts = (number(score.mean, digits, quantity.signed), interval(score, digits), quantity.unit)
    return " ".join(part for part in parts if part)
