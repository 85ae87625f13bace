"""The claims that matter most, at a glance: the paper's number, ours with its interval, the verdict, where it is shown.

Of a claim, each verdict has one line: that of the first model on which it came out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis.claims.finding import NONE, Fact, Finding, Quantity
from core import rope
from core.errors import InputError
from report.claims import CLAIMS
from tables.kit.table import interval, number

RIVAL, OURS = rope.METHODS[rope.RIVAL].title, rope.METHODS[rope.OURS].title


@dataclass(frozen=True)
class Shown:
    """How a claim of report.claims is shown.

    Attributes:
        section: of a model's page, which has its numbers.
        claim: in fewer words, or for one who has not read the paper.
        paper: what the paper says, where it states no number that compares.
    """

    section: str
    claim: str
    paper: str = ""


SHOWN = {
    "The disturbance of PI, YaRN and the method at 8k and 16k (Table 3)": Shown(
        "Disturbance", "Table 3: DPRoPE's disturbance, 10⁻³ nat"
    ),
    "The method has the least disturbance of all": Shown(
        "Disturbance", "DPRoPE has the least disturbance", "less than PI and YaRN"
    ),
    "The same, over dozens of selections of pairs (beyond the paper)": Shown(
        "Disturbance against loss", "Less disturbance extends a model better (rank correlation ρ)"
    ),
    "Best on LongBench-E, the more so beyond L": Shown("LongBench-E", "DPRoPE is best on LongBench-E beyond L"),
    "Least perplexity": Shown("Long texts", "DPRoPE has the least perplexity at L'"),
    "Short text keeps its scores: above the other methods on Open LLM": Shown(
        "What extending costs within L", "DPRoPE is best on short text (Open LLM)"
    ),
    "All passkeys are found within the extended context": Shown("Passkeys", "DPRoPE finds every passkey within L'"),
    "No cost over PI in training or inference": Shown("Time", "DPRoPE takes no more time than PI"),
}


@dataclass(frozen=True)
class Line:
    """A claim's verdict on some models.

    Attributes:
        claim: empty in a claim's further lines.
        paper: its number, or what it says; likewise.
        ours: what was measured on the first of the models, with its interval.
        verdict: one of analysis.claims.finding.VERDICTS.
        models: (name, title) of the models on which it came out.
        section: of those models' pages.
    """

    claim: str
    paper: str
    ours: str
    verdict: str
    models: tuple[tuple[str, str], ...]
    section: str


def lines(folder: Path) -> list[Line]:
    """Of the records under a folder.

    Raises:
        InputError: report.claims has no such claim any more.
    """
    claims = {claim.text: claim for claim in CLAIMS}
    if gone := SHOWN.keys() - claims.keys():
        raise InputError(f"report/claims.py has no claim {min(gone)!r}; name the one that report/main_claims.py shows.")
    return [line for text, shown in SHOWN.items() for line in _lines(shown, claims[text].findings(folder))]


def _lines(shown: Shown, findings: list[Finding]) -> Iterator[Line]:
    by_verdict: dict[str, list[Finding]] = {}
    for finding in findings:
        by_verdict.setdefault(finding.verdict, []).append(finding)
    before = None
    for verdict, own in by_verdict.items():
        if verdict == NONE:
            yield Line(shown.claim, shown.paper, own[0].about, verdict, (), shown.section)
            continue
        fact = _telling(own[0])
        paper = _papers(fact) or shown.paper
        models = tuple((finding.model.name, finding.model.title) for finding in own if finding.model)
        claim = "" if before is not None else shown.claim
        yield Line(claim, "" if paper == before else paper, _ours(fact, own[0]), verdict, models, shown.section)
        before = paper


def _telling(finding: Finding) -> Fact:
    """Of the facts with the finding's verdict: DPRoPE's own, else that against the strongest rival, else the first."""
    facts = [fact for fact in finding.facts if fact.verdict == finding.verdict]
    for wanted in (OURS, RIVAL):
        for fact in facts:
            if wanted in (fact.metric, *(quantity.name for quantity in fact.quantities[:-1])):
                return fact
    return facts[0]


def _papers(fact: Fact) -> str:
    """The paper's number; empty where it states none."""
    last = fact.quantities[-1]
    if fact.decision and fact.decision.effect is not None:
        return f"{number(fact.decision.effect, last.digits, last.signed)} {last.unit.split(' of ')[0]}".strip()
    return next((_value(quantity) for quantity in fact.quantities if quantity.name == "published"), "")


def _ours(fact: Fact, finding: Finding) -> str:
    *others, last = fact.quantities
    if last.name == "difference":
        text = f"{others[0].name} minus {others[1].name}: {_value(last)}"
    elif fact.decision:
        text = f"{last.name}: {_value(last)}"
    elif fact.metric:
        text = f"{fact.metric}: {_value(last)}"
    else:
        text = "; ".join(f"{quantity.name}: {_value(quantity)}" for quantity in fact.quantities)
    beside = [
        f"{each.name}: {_value(each)}" for other in finding.facts if not other.verdict for each in other.quantities
    ]
    start = f"s = {fact.factor:g}, " if fact.factor is not None else ""
    return "; ".join([start + text, *beside])


def _value(quantity: Quantity) -> str:
    score = quantity.score
    parts = (number(score.mean, quantity.digits, quantity.signed), interval(score, quantity.digits), quantity.unit)
    return " ".join(filter(None, parts))


def anchor(heading: str) -> str:
    """What a link to a heading ends in, as GitHub makes it: small letters, marks and digits, spaces as hyphens."""
    kept = (sign for sign in heading.lower() if sign in " -_" or unicodedata.category(sign)[0] in "LMN")
    return "".join(kept).replace(" ", "-")
