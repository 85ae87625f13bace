"""What results/claims.md and results/claims.csv say: how each claim came out on each model, and by
which numbers."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pandas as pd

from analysis import results
from analysis.claims import CLAIMS, statement
from analysis.claims.statement import VERDICTS, Claim, Statement, overall
from analysis.differences import UNDECIDED
from analysis.results import Results
from core import rope
from report.model_view import table as laid_out
from tables.kit.markdown import anchor, text
from tables.kit.table import NONE

# What README leaves to the page of the claims, of a claim that came out so on every model.
_UNLISTED = {statement.EXACT, statement.CERTAIN, statement.NONE, UNDECIDED}
_STATES = {"without training": "untrained", "fine-tuned": "fine-tuned"}


class Tested(NamedTuple):
    """A claim on one model.

    Attributes:
        claim: the claim.
        measured: the model's records; None if no model has one of it.
        statements: what the claim states of the model.
        verdict: theirs together.
    """

    claim: Claim
    measured: Results | None
    statements: Sequence[Statement]
    verdict: str


def tested(folder: Path) -> list[list[Tested]]:
    """Every claim in the paper's order, on every model that has a record of it."""
    models = list(results.every(folder))
    by_claim = []
    for claim in CLAIMS:
        stated = ((each, claim.statements(each)) for each in models)
        of_models = [Tested(claim, each, of, overall(of)) for each, of in stated if of]
        by_claim.append(of_models or [Tested(claim, None, (), statement.NONE)])
    return by_claim


def _name(measured: Results) -> str:
    """The model's, without its size."""
    return text(measured.title.split(" (")[0])


def telling(one: Tested) -> Statement:
    """Of the statements with the verdict, or of all: DPRoPE's own, else that against YaRN, else
    the first."""
    same = [each for each in one.statements if each.verdict == one.verdict] or one.statements
    titles = (rope.METHODS[method].title for method in (rope.PROPOSED, rope.BASELINE))
    found = (
        each
        for title in titles
        for each in same
        if each.what == title or each.what.endswith(f" minus {title}")
    )
    return next(found, same[0])


def table(claims: list[list[Tested]]) -> str:
    """CSV with a row for each claim and model: the number that tells most, its interval or its
    texts, the outcome."""
    rows = []
    for models in claims:
        for one in models:
            row = {
                "key": one.claim.key,
                "claim": one.claim.text,
                "section": one.claim.where,
                "outcome": one.verdict,
            }
            if one.measured:
                stated = telling(one)
                score = stated.number
                row |= {
                    "model": one.measured.name,
                    "measured_on": stated.measured_on,
                    "factor": stated.factor,
                    "metric": stated.metric,
                    "what": stated.what,
                    "mean": score.mean,
                    "low": score.low,
                    "high": score.high,
                    "unit": stated.unit,
                    "paper": stated.papers,
                    "texts": " ".join(f"{value:.6g}" for value in score.texts),
                }
            rows.append(row)
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.6g")


def by_model(claims: list[list[Tested]]) -> str:
    """How each claim came out on each model."""
    measured = [one.measured for models in claims for one in models if one.measured]
    heads = {each.name: f"[{_name(each)}]({quote(each.name)}/README.md)" for each in measured}
    rows = []
    for number, models in enumerate(claims, 1):
        title = f"{number}. {models[0].claim.text}"
        of = {one.measured.name: _outcome(one) for one in models if one.measured}
        rows.append((f"[{title}](#{anchor(title)})", *(of.get(name, NONE) for name in heads)))
    return laid_out(("claim", *heads.values()), rows, words=True)


def _outcome(one: Tested) -> str:
    """With what decided it, where a claim is tested in two ways."""
    by = dict.fromkeys(each.by for each in one.statements if each.verdict == one.verdict)
    decided_by = " and ".join(filter(None, by))
    return f"**{one.verdict}**" + (f", by {decided_by}" if decided_by else "")


def counts(claims: list[list[Tested]]) -> str:
    """How often each outcome came, and what it means."""
    times = Counter(one.verdict for models in claims for one in models)
    rows = [(f"**{each}**", VERDICTS[each], str(times[each])) for each in VERDICTS if times[each]]
    return laid_out(("outcome", "what it means", "times"), rows, words=True)


def evidence(models: list[Tested]) -> str:
    """The statements of a claim on every model, or what it would take to test it."""
    first = models[0]
    if not first.measured:
        return f"**{first.verdict}**. It takes {first.claim.takes}."
    header = ("measured on", "at", "what", "measured", "claimed", "paper", "outcome", "beside it")
    rows = [_evidence(_name(one.measured), each) for one in models for each in one.statements]
    return laid_out(header, rows, words=True)


def _evidence(name: str, stated: Statement) -> tuple[str, ...]:
    at = f"s = {stated.factor:g}"
    return (
        f"{name}, {stated.measured_on}",
        f"{at}, {text(stated.metric)}" if stated.metric else at,
        text(stated.what),
        stated.value,
        text(str(stated.region)) if stated.region else "",
        stated.papers,
        f"**{stated.verdict}**",
        "; ".join(f"{text(remark)}: {value}" for remark, value in stated.remarks),
    )


def decided(claims: list[list[Tested]]) -> str:
    """README's table: the claims that were decided on a model, by what, and where the page of the
    claims has the numbers."""
    rows = []
    for number, models in enumerate(claims, 1):
        verdicts = {one.verdict for one in models}
        if verdicts <= _UNLISTED and len(verdicts) == 1:
            continue
        by_outcome: dict[str, list[str]] = {}
        for one in models:
            by_outcome.setdefault(_plain(one), []).append(_decided_on(one))
        claim = models[0].claim.text
        link = f"[{claim}](results/claims.md#{anchor(f'{number}. {claim}')})"
        found = (f"**{each}**: {', '.join(names)}" for each, names in by_outcome.items())
        rows.append((link, "; ".join(found)))
    return laid_out(("claim", "outcome"), rows, words=True)


def alone(claims: list[list[Tested]]) -> Counter:
    """How many claims have one outcome alone, by that."""
    outcomes = [{_plain(one) for one in models} for models in claims]
    return Counter(one for of in outcomes if len(of) == 1 for one in of)


def _plain(one: Tested) -> str:
    return one.verdict.removesuffix(" here")


def _decided_on(one: Tested) -> str:
    """A model, in which states and by what its claim was decided."""
    by_state: dict[str, dict[str, None]] = {}
    for each in one.statements:
        if each.verdict == one.verdict:
            measures = by_state.setdefault(_STATES.get(each.state, ""), {})
            measures |= {each.by: None} if each.by else {}
    words = [
        f"{state} by {' and '.join(measures)}" if measures else state
        for state, measures in by_state.items()
    ]
    stated = ", ".join(filter(None, words))
    name = _name(one.measured)
    return f"{name} ({stated})" if stated else name
