"""What results/claims.md says: each claim on each model, what was measured, the verdict, and the numbers behind it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from analysis.claims import Claim, claims
from analysis.claims.finding import EXACT, NONE, Fact, Finding, Quantity, overall
from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED
from analysis.results import Model
from core import rope
from tables.kit.markdown import text
from tables.kit.table import interval, number

MEANING = {
    EXACT: "the paper's own numbers, computed again",
    REPRODUCED: "the whole interval lies where the claim says",
    CONTRADICTED: "the whole interval lies where the claim does not",
    UNDECIDED: "the interval lies on both sides",
    NONE: "no model has a record of it",
}
_OURS, _RIVAL = rope.METHODS[rope.OURS].title, rope.METHODS[rope.RIVAL].title


@dataclass(frozen=True)
class Tested:
    """A claim on one model.

    Attributes:
        claim: the claim.
        model: the model; None if no model has a record of it.
        findings: what its tests found on the model.
    """

    claim: Claim
    model: Model | None
    findings: tuple[Finding, ...]

    @property
    def name(self) -> str:
        """The model's name without its size; a dash if there is none."""
        return text(self.model.title.split(" (")[0]) if self.model else "–"

    @property
    def verdict(self) -> str:
        """Of all findings together."""
        return overall([finding.verdict for finding in self.findings]) if self.model else NONE

    @property
    def share(self) -> str:
        """How many statements have the verdict, as "2 of 6" in one line; empty if all have."""
        verdicts = [fact.verdict for finding in self.findings for fact in finding.facts if fact.verdict]
        same = verdicts.count(self.verdict)
        return f"{same}\u00a0of\u00a0{len(verdicts)}" if same < len(verdicts) else ""

    @property
    def paper(self) -> str:
        """The paper's number; what the paper says if it states none."""
        return (papers(_telling(self.findings, self.verdict)) if self.model else "") or self.claim.paper

    @property
    def ours(self) -> str:
        """The fact that tells most of what was measured."""
        if not self.model:
            return self.findings[0].about
        fact = _telling(self.findings, self.verdict)
        start = f"s = {fact.factor:g}, " if fact.factor is not None else ""
        undecided = (other for finding in self.findings for other in finding.facts if not other.verdict)
        beside = [_named(quantity) for other in undecided for quantity in other.quantities]
        return "; ".join([f"{start}{_headline(fact)}", *beside])

    @property
    def notes(self) -> str:
        """What was measured, what is decided together, and up to where nothing counts as a difference."""
        found: list[str] = []
        for finding in self.findings:
            found += [f"{finding.about[:1].upper()}{finding.about[1:]}."] if finding.about else []
            if finding.family:
                together = " × ".join(f"{count} {name}" for count, name in finding.family)
                found.append(f"Holm's correction covers {together}, and the intervals have its levels.")
            if finding.margin:
                found.append(f"Up to {value(finding.margin)} counts as no difference: {finding.margin.name}.")
        return text(" ".join(dict.fromkeys(found)))

    @property
    def facts(self) -> list[tuple[str, ...]]:
        """A line for each fact: of what, what was measured, its number, the paper's, the verdict, numbers beside it."""
        lines = []
        for fact in (fact for finding in self.findings for fact in finding.facts):
            measured, beside = _parts(fact)
            what = measured.name
            if what == "difference":
                what = " minus ".join(quantity.name for quantity in beside)
            numbers = "; ".join(map(_named, beside))
            lines.append((_of(fact), text(what), value(measured), papers(fact), fact.verdict, numbers))
        return lines


def tested(folder: Path) -> list[list[Tested]]:
    """Every claim in the paper's order, on every model that has a record of it."""
    return [_by_model(claim, claim.findings(folder)) for claim in claims()]


def counts(claims: list[list[Tested]]) -> Counter[str]:
    """How often each verdict was reached."""
    return Counter(one.verdict for claim in claims for one in claim)


def fact_line(fact: Fact) -> str:
    """All numbers of a fact in one line."""
    numbers = "; ".join(f"{quantity.name} {value(quantity)}" for quantity in fact.quantities)
    return f"{_of(fact)}: {numbers}" if _of(fact) else numbers


def papers(fact: Fact) -> str:
    """The paper's number; empty if it states none."""
    last = fact.quantities[-1]
    if fact.decision and fact.decision.effect == 0:
        return "no difference"
    if fact.decision and fact.decision.effect is not None:
        return f"{number(fact.decision.effect, last.digits, last.signed)} {last.unit.split(' of ')[0]}".strip()
    return next((value(quantity) for quantity in fact.quantities if quantity.name == "published"), "")


def value(quantity: Quantity) -> str:
    """A number with its interval and unit."""
    score = quantity.score
    parts = (number(score.mean, quantity.digits, quantity.signed), interval(score, quantity.digits), quantity.unit)
    return " ".join(filter(None, parts))


def _by_model(claim: Claim, findings: list[Finding]) -> list[Tested]:
    by_name: dict[str, list[Finding]] = {}
    for finding in findings:
        by_name.setdefault(finding.model.name if finding.model else "", []).append(finding)
    return [Tested(claim, own[0].model, tuple(own)) for own in by_name.values()]


def _telling(findings: tuple[Finding, ...], verdict: str) -> Fact:
    """Of the facts with the verdict: DPRoPE's own, else that against the strongest rival, else the first."""
    same = [fact for finding in findings for fact in finding.facts if fact.verdict == verdict]
    for wanted in (_OURS, _RIVAL):
        for fact in same:
            if wanted in (fact.metric, *(quantity.name for quantity in fact.quantities[:-1])):
                return fact
    return same[0]


def _headline(fact: Fact) -> str:
    *others, last = fact.quantities
    if last.name == "difference":
        return text(f"{others[0].name} minus {others[1].name}") + f": {value(last)}"
    if fact.decision:
        return _named(last)
    if fact.metric:
        return f"{text(fact.metric)}: {value(last)}"
    return "; ".join(map(_named, fact.quantities))


def _parts(fact: Fact) -> tuple[Quantity, list[Quantity]]:
    """The number that a fact is about, and the others; the paper's has a column of its own."""
    own = [quantity for quantity in fact.quantities if quantity.name != "published"]
    return (own[-1], own[:-1]) if fact.decision else (own[0], own[1:])


def _of(fact: Fact) -> str:
    parts = [f"s = {fact.factor:g}"] if fact.factor is not None else []
    return ", ".join([*parts, text(fact.metric)] if fact.metric else parts)


def _named(quantity: Quantity) -> str:
    return f"{text(quantity.name)}: {value(quantity)}"
