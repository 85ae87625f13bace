"""The claims, what tests each, and what the records of every model say: numbers, and a verdict that follows from them.

Each kind of claim has one function that is a test, or that returns one. A claim of the paper is tested against the
paper's own rivals, at the paper's own setting. Both are fixed before anything is measured: the best of several is never
picked by its score.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis import metrics, results
from analysis.claims import ablations, disturbances, lengths, rivals, times
from analysis.claims.finding import NONE, Finding, Test

NOT_RUN = Finding(None, NONE, about="no record; it takes the paper's models and eight A100s")


@dataclass(frozen=True)
class Claim:
    """A claim.

    Attributes:
        text: the claim.
        where: the part of the paper that makes it.
        tests: what is measured.
        shown: the sections of a model's page that have the numbers.
        headline: the claim in the README's words, if it is a main one.
        paper: what the paper says of a main claim, where it states no number that compares.
    """

    text: str
    where: str
    tests: tuple[Test, ...]
    shown: tuple[str, ...]
    headline: str = ""
    paper: str = ""

    def findings(self, folder: Path) -> list[Finding]:
        """At every model that has records under `folder`; NOT_RUN where none has."""
        measured = list(results.every(folder))
        return [finding for test in self.tests for model in measured if (finding := test(model))] or [NOT_RUN]


PAPERS = (
    Claim(
        "The disturbance of PI, YaRN and the method at 8k and 16k (Table 3)",
        "section 5.1",
        (disturbances.published_numbers,),
        ("Disturbance",),
        "Table 3: DPRoPE's disturbance, 10⁻³ nat",
    ),
    Claim(
        "The method has the least disturbance of all",
        "abstract, section 5.1",
        (disturbances.least,),
        ("Disturbance",),
        "DPRoPE has the least disturbance",
        "less than PI and YaRN",
    ),
    Claim(
        "Less disturbance extends a model better",
        "section 5.1",
        (disturbances.order_loss,),
        ("Disturbance", "Long texts"),
        "Less disturbance extends a model better",
        "the less, the better",
    ),
    Claim(
        "Without extension a model collapses beyond L; extended it does not",
        "appendix B.2",
        (
            lengths.collapses("perplexity", metrics.perplexity, less_is_better=True),
            lengths.collapses("passkey", metrics.passkey, "%"),
            lengths.collapses("ruler", metrics.ruler, "%"),
        ),
        ("Long texts", "Passkeys", "RULER"),
    ),
    Claim(
        "Best on LongBench-E, the more so beyond L",
        "section 4.2",
        (rivals.ahead("longbench_e", metrics.longbench_e),),
        ("LongBench-E",),
        "DPRoPE is best on LongBench-E beyond L",
    ),
    Claim("Best on RULER", "appendix B.2", (rivals.ahead("ruler", metrics.ruler),), ("RULER",)),
    Claim(
        "Least perplexity",
        "appendix B.2",
        (rivals.less_perplexity,),
        ("Long texts",),
        "DPRoPE has the least perplexity at L'",
    ),
    Claim(
        "Short text keeps its scores: above the other methods on Open LLM",
        "section 4.3",
        (rivals.ahead("open_llm", metrics.open_llm),),
        ("Open LLM",),
        "DPRoPE is best on short text (Open LLM)",
    ),
    Claim(
        "All passkeys are found within the extended context",
        "section 4.4",
        (lengths.finds_all_passkeys,),
        ("Passkeys",),
        "DPRoPE finds every passkey within L'",
    ),
    Claim(
        "With too few dimensions interpolated, LongBench-E falls",
        "section 5.2",
        (ablations.ablated("longbench_e", metrics.longbench_e, "n_hat", ablations.least_is_below),),
        ("The choice of n̂ and b",),
    ),
    Claim(
        "n̂ has little effect on Open LLM",
        "section 5.2",
        (ablations.ablated("open_llm", metrics.open_llm, "n_hat", ablations.alike),),
        ("The choice of n̂ and b",),
    ),
    Claim(
        "LongBench-E is the same for b = 90, 180, 360, and falls at 720",
        "section 5.3",
        (ablations.ablated("longbench_e", metrics.longbench_e, "intervals", ablations.alike_but_excess),),
        ("The choice of n̂ and b",),
    ),
    Claim(
        "b does not influence Open LLM",
        "section 5.3",
        (ablations.ablated("open_llm", metrics.open_llm, "intervals", ablations.alike),),
        ("The choice of n̂ and b",),
    ),
    Claim(
        "No cost over PI in training or inference",
        "appendix B.2",
        (times.costs_nothing,),
        ("Time",),
        "DPRoPE takes no more time than PI",
        "no more",
    ),
)


def claims() -> list[Claim]:
    """The paper's claims in its order."""
    return list(PAPERS)
