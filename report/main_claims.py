"""README's main claims: each on each model, with the training, the samples and the outcome in one line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from report import claims_page


@dataclass(frozen=True)
class Line:
    """A claim on a model.

    Attributes:
        claim: empty in a claim's further lines.
        paper: its number, or what it says; empty where it is that of the line above.
        name, title: the model's; empty if no model has a record of it.
        where: its training, and how many seeds and samples there are.
        ours: what was measured, with its interval.
        verdict: one of analysis.claims.finding.VERDICTS.
        section: of the model's page.
    """

    claim: str
    paper: str
    name: str
    title: str
    where: str
    ours: str
    verdict: str
    section: str


def lines(folder: Path) -> Iterator[Line]:
    """Of the records under a folder."""
    for models in claims_page.tested(folder):
        before = None
        for one in models if models[0].claim.headline else ():
            claim, paper = (one.claim.headline, one.paper) if before is None else ("", one.paper)
            named = (one.model.name, one.name) if one.model else ("", "")
            shown = "" if paper == before else paper
            yield Line(claim, shown, *named, one.where, one.ours, one.verdict, one.claim.shown[0])
            before = one.paper
