"""What a claim's row opens to: of a model what was measured, and the facts as a table with their intervals drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from analysis.claims.finding import VERDICTS, Fact, Finding, Quantity
from report import forest
from report.phrases import finding_lines, papers_effect
from tables.kit.table import interval, number

_CLASSES = dict(zip(VERDICTS, ("exact", "reproduced", "contradicted", "undecided", "none")))


def chip(verdict: str) -> str:
    """A verdict as a coloured word."""
    return f"<span class='verdict {_CLASSES[verdict]}'>{escape(verdict)}</span>"


def render(findings: Sequence[Finding]) -> str:
    """The findings of one model, one after the other."""
    return "".join(map(_finding, findings))


def decided(findings: Sequence[Finding]) -> list[str]:
    """The verdicts of all facts that decide something."""
    return [fact.verdict for finding in findings for fact in finding.facts if fact.verdict]


def _finding(finding: Finding) -> str:
    lines = finding_lines(replace(finding, facts=()))
    told = f"<p>{escape(' '.join(lines))}</p>" if lines else ""
    return told + (_table(finding.facts) if finding.facts else "")


def _table(facts: Sequence[Fact]) -> str:
    """A line for each fact; where it was decided on an interval, that as a plot and what it says of the paper's."""
    columns = max(len(fact.quantities) for fact in facts)
    decisions = [fact.decision for fact in facts if fact.decision]
    span = forest.spans(decisions) if decisions else None
    open_ones = any(map(papers_effect, facts))
    heads = ["<td></td>", "<th scope=col>verdict</th>", f"<th scope=col colspan={columns}>measured</th>"]
    heads += ["<th scope=col>interval</th>"] if span else []
    heads += ["<th scope=col>the paper's number</th>"] if open_ones else []
    rows = []
    for fact in facts:
        cells = list(map(_quantity, fact.quantities))
        # What was decided on stands in the last column.
        cells[len(cells) - 1 : len(cells) - 1] = ["<td></td>"] * (columns - len(cells))
        if span:
            cells.append(f"<td>{forest.line(fact.decision, *span) if fact.decision else ''}</td>")
        if open_ones:
            cells.append(f"<td class=sentence>{escape(papers_effect(fact))}</td>")
        verdict = chip(fact.verdict) if fact.verdict else ""
        rows.append(f"<tr><th scope=row>{escape(_of(fact))}</th><td>{verdict}</td>{''.join(cells)}</tr>")
    header = f"<tr class=header>{''.join(heads)}</tr>"
    return f"<div class=scroll><table class=facts><tbody>{header}{''.join(rows)}</tbody></table></div>"


def _of(fact: Fact) -> str:
    parts = [f"s = {fact.factor:g}"] if fact.factor is not None else []
    return ", ".join([*parts, fact.metric] if fact.metric else parts)


def _quantity(quantity: Quantity) -> str:
    score, digits = quantity.score, quantity.digits
    value = " ".join(part for part in (number(score.mean, digits, quantity.signed), quantity.unit) if part)
    small = interval(score, digits)
    shown = f"{escape(value)} <small>{escape(small)}</small>" if small else escape(value)
    return f"<td><span class=of>{escape(quantity.name)}</span> {shown}</td>"
