"""What results/claims.md and results/claims.csv say: how each claim came out on each model, and by
which numbers."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis import results
from analysis.claims import CLAIMS
from analysis.claims.statement import Claim, Statement, overall
from analysis.results import Results
from core import rope
from tables.kit.markdown import text


@dataclass(frozen=True)
class Tested:
    """A claim on one model.

    Attributes:
        claim: the claim.
        measured: the model that has records of it; None if none has.
        statements: what is stated of the model.
    """

    claim: Claim
    measured: Results | None
    statements: tuple[Statement, ...] = ()

    @property
    def name(self) -> str:
        """The model's name without its size."""
        return text(self.measured.title.split(" (")[0]) if self.measured else ""

    @property
    def verdict(self) -> str:
        """Of all statements together."""
        return overall(self.statements)

    @property
    def telling(self) -> Statement:
        """Of the statements with the verdict, or of all: DPRoPE's own, else that against YaRN, else
        the first."""
        same = [statement for statement in self.statements if statement.verdict == self.verdict]
        same = same or list(self.statements)
        for method in (rope.PROPOSED, rope.BASELINE):
            title = rope.METHODS[method].title
            for statement in same:
                if statement.what == title or statement.what.endswith(f" minus {title}"):
                    return statement
        return same[0]


def tested(folder: Path) -> list[list[Tested]]:
    """Every claim in the paper's order, on every model that has a record of it."""
    models = list(results.every(folder))
    by_claim = []
    for claim in CLAIMS:
        of_models = [Tested(claim, each, tuple(claim.statements(each))) for each in models]
        by_claim.append([one for one in of_models if one.statements] or [Tested(claim, None)])
    return by_claim


def table(claims: list[list[Tested]]) -> str:
    """CSV with a row for each claim and model: the number that tells most, its interval or its
    texts, the outcome."""
    rows = []
    for one in (one for models in claims for one in models):
        row = {
            "key": one.claim.key,
            "claim": one.claim.text,
            "section": one.claim.where,
            "outcome": one.verdict,
        }
        if one.measured:
            telling = one.telling
            score = telling.number
            row |= {"model": one.measured.name, "measured_on": telling.measured_on}
            row |= {"factor": telling.factor, "metric": telling.metric, "what": telling.what}
            row |= {"mean": score.mean, "low": score.low, "high": score.high, "unit": telling.unit}
            row |= {
                "paper": telling.papers,
                "texts": " ".join(f"{value:.6g}" for value in score.texts),
            }
        rows.append(row)
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.6g")
