"""README's main claims: of each, a line for each verdict, with the numbers of the first model on which it came out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from report import claims_page
from report.claims_page import Tested


@dataclass(frozen=True)
class Line:
    """A claim's verdict on some models.

    Attributes:
        claim: empty in a claim's further lines.
        paper: its number, or what it says; empty where it is that of the line above.
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
    """Of the records under a folder."""
    main = (models for models in claims_page.tested(folder) if models[0].claim.headline)
    return [line for models in main for line in _lines(models)]


def _lines(models: list[Tested]) -> Iterator[Line]:
    by_verdict: dict[str, list[Tested]] = {}
    for one in models:
        by_verdict.setdefault(one.verdict, []).append(one)
    before = None
    for verdict, (first, *others) in by_verdict.items():
        titles = tuple((one.model.name, one.model.title) for one in (first, *others) if one.model)
        claim, paper = "" if before is not None else first.claim.headline, "" if first.paper == before else first.paper
        yield Line(claim, paper, first.ours, verdict, titles, first.claim.shown[0])
        before = first.paper
