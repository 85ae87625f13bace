"""The paper's claims: where it makes each, and what tests it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis import metrics, results
from analysis.findings import NONE, Finding
from analysis.verdicts import Test, ablations, disturbances, lengths, rivals, times

NOT_RUN = Finding(None, NONE, about="no record; it takes the paper's models and eight A100s")


@dataclass(frozen=True)
class Claim:
    """A claim, where the paper makes it, what tests it, and the figures and tables by name that show it."""

    text: str
    where: str
    tests: tuple[Test, ...]
    shown: tuple[str, ...] = ()

    def findings(self, folder: Path) -> list[Finding]:
        """At every scale that has records under `folder`; NOT_RUN where none has."""
        measured = list(results.every(folder))
        return [finding for test in self.tests for scale in measured for finding in test(scale)] or [NOT_RUN]


CLAIMS = (
    Claim(
        "The disturbance of PI, YaRN and the method at 8k and 16k (Table 3)",
        "section 5.1",
        (disturbances.published_numbers,),
        ("disturbance",),
    ),
    Claim(
        "The method has the least disturbance of all",
        "abstract, section 5.1",
        (disturbances.least,),
        ("disturbance_strategies", "disturbance"),
    ),
    Claim("Less disturbance extends a model better", "section 5.1", (disturbances.order_loss,), ("extension",)),
    Claim(
        "The same, over dozens of selections of pairs (beyond the paper)",
        "section 5.1",
        (disturbances.selections_order_loss,),
        ("selections",),
    ),
    Claim(
        "Without extension a model collapses beyond L; extended it does not",
        "appendix B.2",
        (
            lengths.collapses("perplexity", metrics.perplexity, less_is_better=True),
            lengths.collapses("passkey", metrics.passkey, "%"),
            lengths.collapses("ruler", metrics.ruler, "%"),
        ),
        ("extension", "passkey", "perplexity", "ruler"),
    ),
    Claim(
        "Best on LongBench-E, the more so beyond L",
        "section 4.2",
        (rivals.ahead("longbench_e", metrics.longbench_e),),
        ("longbench_e",),
    ),
    Claim("Best on RULER", "appendix B.2", (rivals.ahead("ruler", metrics.ruler),), ("ruler", "ruler_paired")),
    Claim("Least perplexity", "appendix B.2", (rivals.less_perplexity,), ("perplexity", "whole_texts")),
    Claim(
        "Short text keeps its scores: above the other methods on Open LLM",
        "section 4.3",
        (rivals.ahead("open_llm", metrics.open_llm),),
        ("open_llm", "short_text"),
    ),
    Claim(
        "All passkeys are found within the extended context", "section 4.4", (lengths.finds_all_passkeys,), ("passkey",)
    ),
    Claim(
        "With too few dimensions interpolated, LongBench-E falls",
        "section 5.2",
        (ablations.too_few_dimensions,),
        ("disturbance_longbench_e", "n_hat_longbench_e"),
    ),
    Claim("n̂ has little effect on Open LLM", "section 5.2", (ablations.n_hat_is_alike,), ("n_hat_open_llm",)),
    Claim(
        "LongBench-E is the same for b = 90, 180, 360, and falls at 720",
        "section 5.3",
        (ablations.only_the_most_intervals_hurt,),
        ("intervals_longbench_e",),
    ),
    Claim("b does not influence Open LLM", "section 5.3", (ablations.intervals_are_alike,), ("intervals_open_llm",)),
    Claim("No cost over PI in training or inference", "appendix B.2", (times.costs_nothing,), ("time_cost",)),
)
