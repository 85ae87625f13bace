"""What results/claims.md says: each claim on each model, what was measured, the verdict, and the numbers behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.claims import Claim, claims
from analysis.claims.finding import CERTAIN, EXACT, NONE, Fact, Finding, Quantity, overall
from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED
from analysis.results import Model
from core import rope
from tables.kit.markdown import text
from tables.kit.table import number, spread

MEANING = {
    EXACT: "the paper's own numbers, computed again",
    REPRODUCED: "the whole interval lies where the claim says",
    CONTRADICTED: "the whole interval lies where the claim does not",
    UNDECIDED: "the interval lies on both sides, or there are too few texts or seeds for one",
    CERTAIN: "it could not have come out otherwise",
    NONE: "no model has a record of it",
}
_OURS, _RIVAL = rope.METHODS[rope.PROPOSED].title, rope.METHODS[rope.BASELINE].title


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
    def every_fact(self) -> list[Fact]:
        """The facts of all findings."""
        return [fact for finding in self.findings for fact in finding.facts]

    @property
    def verdict(self) -> str:
        """Of all findings together."""
        return overall([finding.verdict for finding in self.findings]) if self.model else NONE

    @property
    def where(self) -> str:
        """The training, and how many seeds and samples there are of the first finding."""
        return self.findings[0].about if self.model else ""

    @property
    def share(self) -> str:
        """How many statements have the verdict, as "2 of 6" in one line; empty if all have."""
        verdicts = [fact.verdict for fact in self.every_fact if fact.verdict]
        same = verdicts.count(self.verdict)
        return f"{same}\u00a0of\u00a0{len(verdicts)}" if same < len(verdicts) else ""

    @property
    def paper(self) -> str:
        """The paper's number; what the paper says if it states none."""
        return (papers(self.telling) if self.model else "") or self.claim.paper

    @property
    def telling(self) -> Fact:
        """Of the facts with the verdict: DPRoPE's own, else that against the strongest rival, else the first."""
        same = [fact for fact in self.every_fact if fact.verdict == self.verdict]
        for wanted in (_OURS, _RIVAL):
            for fact in same:
                if wanted in (fact.metric, *(quantity.name for quantity in fact.quantities[:-1])):
                    return fact
        return same[0]

    @property
    def ours(self) -> str:
        """The fact that tells most of what was measured."""
        if not self.model:
            return self.findings[0].about
        fact = self.telling
        start = f"s = {fact.factor:g}, " if fact.factor is not None else ""
        beside = [_named(each) for other in self.every_fact if not other.verdict for each in other.quantities]
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
        for fact in self.every_fact:
            measured, beside = _measured(fact)
            numbers = "; ".join(map(_named, beside))
            lines.append(
                (_of(fact), text(_what(measured, beside)), value(measured), papers(fact), fact.verdict, numbers)
            )
        return lines


def tested(folder: Path) -> list[list[Tested]]:
    """Every claim in the paper's order, on every model that has a record of it."""
    by_claim = []
    for claim in claims():
        by_model: dict[str, list[Finding]] = {}
        for finding in claim.findings(folder):
            by_model.setdefault(finding.model.name if finding.model else "", []).append(finding)
        by_claim.append([Tested(claim, own[0].model, tuple(own)) for own in by_model.values()])
    return by_claim


def table(claims: list[list[Tested]]) -> str:
    """CSV with a row for each claim and model: the number that tells most, its interval or its texts, the outcome."""
    rows = []
    for one in (one for models in claims for one in models):
        row = {"claim": one.claim.text, "section": one.claim.where, "outcome": one.verdict}
        if one.model:
            fact = one.telling
            measured, beside = _measured(fact)
            score = measured.score
            row |= {"model": one.model.name, "measured_on": one.where, "factor": fact.factor, "metric": fact.metric}
            row |= {"what": _what(measured, beside)}
            row |= {"mean": score.mean, "low": score.low, "high": score.high, "unit": measured.unit, "paper": one.paper}
            row |= {"texts": " ".join(f"{value:.6g}" for value in score.texts)}
        rows.append(row)
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.6g")


def _measured(fact: Fact) -> tuple[Quantity, Sequence[Quantity]]:
    """The number that was measured, and those beside it."""
    own = [quantity for quantity in fact.quantities if quantity.name != "published"]
    return (own[-1], own[:-1]) if fact.decision else (own[0], own[1:])


def _what(measured: Quantity, beside: Sequence[Quantity]) -> str:
    return " minus ".join(quantity.name for quantity in beside) if measured.name == "difference" else measured.name


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
    """A number with its interval, or with the value of each text, and its unit."""
    score = quantity.score
    parts = (
        number(score.mean, quantity.digits, quantity.signed),
        spread(score, quantity.digits, quantity.signed),
        quantity.unit,
    )
    return " ".join(filter(None, parts))


def _headline(fact: Fact) -> str:
    *others, last = fact.quantities
    if last.name == "difference":
        return text(f"{others[0].name} minus {others[1].name}") + f": {value(last)}"
    if fact.decision:
        return "; ".join(map(_named, (last, *others)))
    if fact.metric:
        return f"{text(fact.metric)}: {value(last)}"
    return "; ".join(map(_named, fact.quantities))


def _of(fact: Fact) -> str:
    parts = [f"s = {fact.factor:g}"] if fact.factor is not None else []
    return ", ".join([*parts, text(fact.metric)] if fact.metric else parts)


def _named(quantity: Quantity) -> str:
    return f"{text(quantity.name)}: {value(quantity)}"
