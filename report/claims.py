"""The paper's claims: where it makes each, and what tests it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis import metrics, results, verdicts
from analysis.findings import NONE, Finding
from analysis.verdicts import Test

NOT_RUN = Finding(None, NONE, about="no record; it takes the paper's models and eight A100s")


@dataclass(frozen=True)
class Claim:
    """A claim, where the paper makes it, and what tests it: one test or several."""

    text: str
    where: str
    tests: tuple[Test, ...]

    def findings(self, folder: Path) -> list[Finding]:
        """At every scale that has records under `folder`; NOT_RUN where none has."""
        measured = list(results.every(folder))
        return [finding for test in self.tests for scale in measured for finding in test(scale)] or [NOT_RUN]


CLAIMS = (
    Claim(
        "The disturbance of PI, YaRN and the method at 8k and 16k (Table 3)",
        "section 5.1",
        (verdicts.published_disturbance,),
    ),
    Claim("The method has the least disturbance of all", "abstract, section 5.1", (verdicts.least_disturbance,)),
    Claim("Less disturbance extends a model better", "section 5.1", (verdicts.disturbance_orders_loss,)),
    Claim(
        "The same, over dozens of selections of pairs (beyond the paper)",
        "section 5.1",
        (verdicts.selections_order_loss,),
    ),
    Claim(
        "Without extension a model collapses beyond L; extended it does not",
        "appendix B.2",
        (
            verdicts.collapses("perplexity", metrics.perplexity, sign=-1),
            verdicts.collapses("passkey", metrics.passkey, "%"),
            verdicts.collapses("ruler", metrics.ruler, "%"),
        ),
    ),
    Claim(
        "Best on LongBench-E, the more so beyond L",
        "section 4.2",
        (verdicts.better("longbench_e", metrics.longbench_e, verdicts.average),),
    ),
    Claim("Best on RULER", "appendix B.2", (verdicts.better("ruler", metrics.ruler, verdicts.average),)),
    Claim(
        "Least perplexity",
        "appendix B.2",
        (
            verdicts.better(
                "perplexity", metrics.perplexity, verdicts.at_extended_length, unit="of perplexity", sign=-1
            ),
        ),
    ),
    Claim(
        "Short text keeps its scores: above the other methods on Open LLM",
        "section 4.3",
        (verdicts.better("open_llm", metrics.open_llm, verdicts.average),),
    ),
    Claim("All passkeys are found within the extended context", "section 4.4", (verdicts.finds_all_passkeys,)),
    Claim(
        "With too few dimensions interpolated, LongBench-E falls",
        "section 5.2",
        (verdicts.ablated("longbench_e", metrics.longbench_e, "n_hat", verdicts.least_hurts),),
    ),
    Claim(
        "n̂ has little effect on Open LLM",
        "section 5.2",
        (verdicts.ablated("open_llm", metrics.open_llm, "n_hat", verdicts.alike),),
    ),
    Claim(
        "LongBench-E is the same for b = 90, 180, 360, and falls at 720",
        "section 5.3",
        (
            verdicts.ablated(
                "longbench_e",
                metrics.longbench_e,
                "intervals",
                verdicts.only_hurts(720),
                verdicts.preferably(360),
                default=360,
            ),
        ),
    ),
    Claim(
        "b does not influence Open LLM",
        "section 5.3",
        (
            verdicts.ablated(
                "open_llm", metrics.open_llm, "intervals", verdicts.alike, verdicts.preferably(360), default=360
            ),
        ),
    ),
    Claim("No cost over PI in training or inference", "appendix B.2", (verdicts.costs_nothing,)),
)
