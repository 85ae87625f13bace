"""The claims of the paper, in its order, and what each states of a model."""

from functools import partial

from analysis.claims import statements
from analysis.claims.statement import Claim

_BENCHMARK = (
    "the real benchmark on a model that answers it within L, fine-tuned; tiny's is a generated "
    "miniature"
)
_BOOKS = "losses by position on five books or more (experiments.beyond.loss_by_position)"
_GEOMETRY = "a model with plain RoPE; the paper's numbers are of LLaMA2's"
_TIMES = "times of a training step and of a forward pass (experiments.time_cost)"

# Each one's key, text, place in the paper, what a test takes, and what it states of a model.
CLAIMS = (
    Claim(
        "table_3",
        "Table 3: the disturbance of PI, YaRN and DPRoPE",
        "section 5.1",
        _GEOMETRY,
        statements.published_disturbances,
    ),
    Claim(
        "least_disturbance",
        "DPRoPE has the least disturbance",
        "abstract, section 5.1",
        _GEOMETRY,
        statements.least_disturbance,
        on_test_bed=True,
    ),
    Claim(
        "less_is_better",
        "Less disturbance extends a model better",
        "section 5.1",
        _BOOKS,
        statements.less_is_better,
    ),
    Claim(
        "over_t",
        "Within DPRoPE, over t, less disturbance scores more (Figure 5)",
        "section 5.1",
        _BENCHMARK,
    ),
    Claim(
        "collapse",
        "Without extension a model collapses beyond L; extended it does not",
        "appendix B.2",
        _BOOKS,
        statements.collapse,
    ),
    Claim(
        "longbench_e",
        "DPRoPE is best on LongBench-E beyond L",
        "section 4.2",
        _BENCHMARK,
        partial(statements.ahead, experiment="longbench_e"),
    ),
    Claim(
        "degrades",
        "Beyond L DPRoPE keeps its scores, where PI and YaRN degrade",
        "section 4.2",
        f"scores by length of {_BENCHMARK}",
    ),
    Claim(
        "longer",
        "DPRoPE does better on models of longer L",
        "limitations",
        "fine-tunes of models of other L",
    ),
    Claim(
        "ruler",
        "DPRoPE is best on RULER",
        "appendix B.2",
        "RULER of DPRoPE and a rival",
        partial(statements.ahead, experiment="ruler"),
    ),
    Claim(
        "perplexity",
        "Untrained, DPRoPE has the least perplexity at L'",
        "appendix B.2",
        _BOOKS,
        statements.least_loss,
    ),
    Claim(
        "open_llm",
        "DPRoPE is best on short text (Open LLM), and keeps the original's scores",
        "abstract, section 4.3",
        _BENCHMARK,
        statements.open_llm,
    ),
    Claim(
        "passkey",
        "DPRoPE finds every passkey within L'",
        "section 4.4",
        "passkeys",
        statements.finds_all_passkeys,
    ),
    Claim(
        "n_hat_longbench_e",
        "With too few dimensions interpolated, LongBench-E falls",
        "section 5.2",
        _BENCHMARK,
        statements.n_hat_longbench_e,
    ),
    Claim(
        "n_hat_open_llm",
        "n̂ has little effect on Open LLM",
        "section 5.2",
        _BENCHMARK,
        partial(statements.open_llm_alike, option="n_hat"),
    ),
    Claim(
        "intervals_longbench_e",
        "LongBench-E is the same for b = 90, 180, 360, and falls at 720",
        "section 5.3",
        _BENCHMARK,
        statements.intervals_longbench_e,
    ),
    Claim(
        "intervals_open_llm",
        "b does not influence Open LLM",
        "section 5.3",
        _BENCHMARK,
        partial(statements.open_llm_alike, option="intervals"),
    ),
    Claim(
        "time",
        "DPRoPE takes no more time than PI",
        "appendix B.2",
        _TIMES,
        statements.time,
        on_test_bed=True,
    ),
    Claim(
        "clex_time",
        "CLEX takes more time than PI",
        "appendix B.2",
        _TIMES,
        statements.clex_time,
        on_test_bed=True,
    ),
)
