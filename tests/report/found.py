"""What the claims come out as, on records made by hand."""

from analysis.claims import claims
from report.claims_page import fact_line


def findings(start, folder):
    (claim,) = [claim for claim in claims() if claim.text.startswith(start)]
    return claim.findings(folder.path)


def only(start, folder):
    (finding,) = findings(start, folder)
    assert all(fact_line(fact).strip() for fact in finding.facts)
    return finding


def means(fact):
    return [round(quantity.score.mean, 6) for quantity in fact.quantities]


def by_name(fact):
    return {quantity.name: quantity.score for quantity in fact.quantities}


def decided(finding):
    """The last number of every fact, and what was decided on it."""
    return [(round(fact.quantities[-1].score.mean, 6), fact.verdict) for fact in finding.facts]
