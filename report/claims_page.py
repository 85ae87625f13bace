"""What results/claims.md and results/claims.csv say: how each claim came out on each model, and by
which numbers."""

from collections import Counter
from pathlib import Path
from typing import Any

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
        for each in same:
            if each.what == title or each.what.endswith(f" minus {title}"):
                return each
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


def by_model(claims: list[list[Tested]]) -> str:
    """How each claim came out on each model."""
    measured = [one for models in claims for one in models if one["measured"]]
    names = {one["measured"].name: one["name"] for one in measured}
    rows = []
    for number, models in enumerate(claims, 1):
        title = f"{number}. {models[0]['claim'].text}"
        of = {one["measured"].name: one for one in models if one["measured"]}
        rows.append((f"[{title}](#{anchor(title)})", *(_outcome(of.get(name)) for name in names)))
    heads = (f"[{name}]({folder}/README.md)" for folder, name in names.items())
    return laid_out(("claim", *heads), rows, words=True)


def _outcome(one: Tested | None) -> str:
    if one is None:
        return NONE
    return f"**{one['verdict']}**" + (f", by {one['by']}" if one["by"] else "")


def counts(claims: list[list[Tested]]) -> str:
    """How often each outcome came, and what it means."""
    times = Counter(one["verdict"] for models in claims for one in models)
    rows = [(f"**{each}**", VERDICTS[each], str(times[each])) for each in VERDICTS if times[each]]
    return laid_out(("outcome", "what it means", "times"), rows, words=True)


def evidence(models: list[Tested]) -> str:
    """The statements of a claim on every model, or what it would take to test it."""
    if not models[0]["measured"]:
        return f"**{models[0]['verdict']}**. It takes {models[0]['claim'].takes}."
    header = "measured on", "at", "what", "measured", "claimed", "paper", "outcome", "beside it"
    rows = [(one["name"], each) for one in models for each in one["statements"]]
    return laid_out(header, [_evidence(*row) for row in rows], words=True)


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
        by_outcome: dict[str, list[str]] = {}
        for one in models:
            by_outcome.setdefault(_plain(one), []).append(_decided_on(one))
        if not ({one["verdict"] for one in models} <= _UNLISTED and len(by_outcome) == 1):
            claim = models[0]["claim"].text
            link = f"[{claim}](results/claims.md#{anchor(f'{number}. {claim}')})"
            found = (f"**{each}**: {', '.join(names)}" for each, names in by_outcome.items())
            rows.append((link, "; ".join(found)))
    return laid_out(("claim", "outcome"), rows, words=True)


def alone(claims: list[list[Tested]]) -> Counter:
    """How many claims have one outcome alone, by that."""
    outcomes = [{_plain(one) for one in models} for models in claims]
    return Counter(one for of in outcomes if len(of) == 1 for one in of)


def _plain(one: Tested) -> str:
    return one["verdict"].removesuffix(" here")


def _decided_on(one: Tested) -> str:
    """A model, in which state and by what its claim was decided."""
    deciding = {
        each.by: _STATES.get(each.state, "")
        for each in reversed(one["statements"])
        if each.verdict == one["verdict"]
    }
    words = [f"{state} by {by}" if by else state for by, state in deciding.items()]
    stated = " and ".join(filter(None, reversed(words)))
    return f"{one['name']} ({stated})" if stated else one["name"]
