"""What results/claims.md and results/claims.csv say: how each claim came out on each model, and by
which numbers."""

from pathlib import Path
from typing import Any

import pandas as pd

from analysis import results
from analysis.claims import CLAIMS
from analysis.claims.statement import Claim, Statement, overall
from analysis.results import Results
from core import rope
from tables.kit.markdown import text

# A claim on one model, by `claim`, `measured` (None if no model has records of it), `name` (the
# model's, without its size), `statements`, their `verdict` together, `by` what that came out (empty
# where a claim is tested in one way), and the `telling` one.
Tested = dict[str, Any]


def tested(folder: Path) -> list[list[Tested]]:
    """Every claim in the paper's order, on every model that has a record of it."""
    models = list(results.every(folder))
    by_claim = []
    for claim in CLAIMS:
        of_models = [_on_model(claim, each) for each in models]
        by_claim.append([one for one in of_models if one["statements"]] or [_on_model(claim, None)])
    return by_claim


def _on_model(claim: Claim, measured: Results | None) -> Tested:
    statements = tuple(claim.statements(measured)) if measured else ()
    verdict = overall(statements)
    return {
        "claim": claim,
        "measured": measured,
        "name": text(measured.title.split(" (")[0]) if measured else "",
        "statements": statements,
        "verdict": verdict,
        "by": " and ".join(
            dict.fromkeys(each.by for each in statements if each.by and each.verdict == verdict)
        ),
        "telling": _telling(statements, verdict),
    }


def _telling(statements: tuple[Statement, ...], verdict: str) -> Statement | None:
    """Of the statements with the verdict, or of all: DPRoPE's own, else that against YaRN, else
    the first."""
    same = [statement for statement in statements if statement.verdict == verdict]
    same = same or list(statements)
    for method in (rope.PROPOSED, rope.BASELINE):
        title = rope.METHODS[method].title
        for statement in same:
            if statement.what == title or statement.what.endswith(f" minus {title}"):
                return statement
    return same[0] if same else None


def table(claims: list[list[Tested]]) -> str:
    """CSV with a row for each claim and model: the number that tells most, its interval or its
    texts, the outcome."""
    rows = []
    for one in (one for models in claims for one in models):
        row = {
            "key": one["claim"].key,
            "claim": one["claim"].text,
            "section": one["claim"].where,
            "outcome": one["verdict"],
        }
        if telling := one["telling"]:
            score = telling.number
            row |= {
                "model": one["measured"].name,
                "measured_on": telling.measured_on,
                "factor": telling.factor,
                "metric": telling.metric,
                "what": telling.what,
                "mean": score.mean,
                "low": score.low,
                "high": score.high,
                "unit": telling.unit,
                "paper": telling.papers,
                "texts": " ".join(f"{value:.6g}" for value in score.texts),
            }
        rows.append(row)
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.6g")
