"""The verdicts at a glance: a row for each claim, a word for each model; each row opens to the numbers behind it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape
from pathlib import Path

from analysis.claims.finding import EXACT, NONE, VERDICTS, Finding, overall
from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED
from analysis.results import Model
from report import facts
from report.claims import CLAIMS, Claim
from report.gallery import Gallery

MEANING = {
    EXACT: "the paper's own numbers, recomputed",
    REPRODUCED: "the whole interval lies where the claim says",
    CONTRADICTED: "the whole interval lies where the claim does not",
    UNDECIDED: "the interval lies on both sides",
    NONE: "no record; it takes the paper's models",
}


@dataclass(frozen=True)
class Tested:
    """A claim and what was found of it, by model; empty where nothing was measured."""

    claim: Claim
    by_model: dict[str, list[Finding]]

    def verdict(self, model: str) -> str | None:
        """Of all findings of a model together; None where there is none."""
        found = [finding.verdict for finding in self.by_model.get(model, ())]
        return overall(found) if found else None


def tested(folder: Path) -> list[Tested]:
    """Every claim, in the paper's order."""
    made = []
    for claim in CLAIMS:
        by_model: dict[str, list[Finding]] = {}
        for finding in claim.findings(folder):
            if finding.model:
                by_model.setdefault(finding.model.name, []).append(finding)
        made.append(Tested(claim, by_model))
    return made


def counts(claims: list[Tested]) -> Counter[str]:
    """How many verdicts there are of each kind: one for each claim and model, one for each claim that was not run."""
    return Counter(one.verdict(model) or NONE for one in claims for model in one.by_model or [""])


def legend(claims: list[Tested]) -> str:
    """Each verdict with its meaning and how often it was reached."""
    found = counts(claims)
    lines = [
        f"<div><dt>{facts.chip(verdict)} <b>{found[verdict]}</b></dt><dd>{escape(MEANING[verdict])}</dd></div>"
        for verdict in VERDICTS
        if found[verdict] or verdict != NONE
    ]
    return f"<dl class=legend>{''.join(lines)}</dl>"


def render(claims: list[Tested], models: list[Gallery]) -> str:
    """The table. Without a script every row is open; the script closes them and makes the claims buttons."""
    heads = ["in the paper", "the claim", *(model.model.title for model in models)]
    header = "".join(f"<th scope=col>{escape(title)}</th>" for title in heads)
    rows = "".join(_claim(number, one, models) for number, one in enumerate(claims, start=1))
    return (
        f"<div class=scroll><table class=verdicts style='--models:{len(models)}'>"
        f"<thead><tr class=header>{header}</tr></thead>{rows}</table></div>"
    )


def _claim(number: int, one: Tested, models: list[Gallery]) -> str:
    cells = "".join(_cell(one, model.model) for model in models)
    opened = "".join(_opened(one, model) for model in models) or "<p>No record of it.</p>"
    return (
        f'<tbody id="claim-{number}"><tr class=claim><td data-order={number}>{escape(one.claim.where)}</td>'
        f"<th scope=row>{escape(one.claim.text)}</th>{cells}</tr>"
        f'<tr class=more id="claim-{number}-more"><td colspan={2 + len(models)}>{opened}</td></tr></tbody>'
    )


def _cell(one: Tested, model: Model) -> str:
    """A word, and how many of the statements behind it have that verdict where some do not."""
    verdict = one.verdict(model.name)
    title = escape(model.title)
    if verdict is None:
        if one.by_model:
            return f"<td class=unmeasured data-model='{title}' data-order={len(VERDICTS)}>–</td>"
        verdict = NONE
    decided = facts.decided(one.by_model.get(model.name, ()))
    same = decided.count(verdict)
    share = f" <small>{same} of {len(decided)}</small>" if same < len(decided) else ""
    return f"<td data-model='{title}' data-order={VERDICTS.index(verdict)}>{facts.chip(verdict)}{share}</td>"


def _opened(one: Tested, model: Gallery) -> str:
    verdict = one.verdict(model.model.name)
    if verdict is None:
        return ""
    found = facts.render(one.by_model[model.model.name])
    links = model.links(one.claim.shown)
    return f"<section><h3>{escape(model.model.title)} {facts.chip(verdict)}</h3>{found}{links}</section>"
