"""The claims of the paper, in its order, and what tests each."""

from analysis.claims import tests
from analysis.claims.statement import Claim
from analysis.claims.tests import ablated, ahead

_BENCHMARK = (
    "the real benchmark on a model that answers it within L, fine-tuned; tiny's is a generated "
    "miniature"
)
_BOOKS = "losses by position on five books or more (experiments.beyond.loss_by_position)"
_GEOMETRY = "a model with plain RoPE; the paper's numbers are of LLaMA2's"
_TIMES = "times of a training step and of a forward pass (experiments.time_cost)"

CLAIMS = (
    Claim(
        "table_3",
        "Table 3: the disturbance of PI, YaRN and DPRoPE",
        "section 5.1",
        (tests.published_numbers,),
        _GEOMETRY,
    ),
    Claim(
        "least_disturbance",
        "DPRoPE has the least disturbance",
        "abstract, section 5.1",
        (tests.least,),
        _GEOMETRY,
    ),
    Claim(
        "less_is_better",
        "Less disturbance extends a model better",
        "section 5.1",
        (tests.order_loss,),
        _BOOKS,
    ),
    Claim(
        "over_t",
        "Within DPRoPE, over t, less disturbance scores more (Figure 5)",
        "section 5.1",
        takes=_BENCHMARK,
    ),
    Claim(
        "collapse",
        "Without extension a model collapses beyond L; extended it does not",
        "appendix B.2",
        (tests.collapse_in_loss, tests.collapse_in_passkeys),
        f"passkeys, or {_BOOKS}",
    ),
    Claim(
        "longbench_e",
        "DPRoPE is best on LongBench-E beyond L",
        "section 4.2",
        (ahead("longbench_e"),),
        _BENCHMARK,
    ),
    Claim(
        "degrades",
        "Beyond L DPRoPE keeps its scores, where PI and YaRN degrade",
        "section 4.2",
        takes=f"{_BENCHMARK}, by length",
    ),
    Claim(
        "longer",
        "DPRoPE does better on models of longer L",
        "limitations",
        takes="fine-tunes of models of other L",
    ),
    Claim(
        "ruler",
        "DPRoPE is best on RULER",
        "appendix B.2",
        (ahead("ruler"),),
        "RULER of DPRoPE and a rival",
    ),
    Claim(
        "perplexity",
        "DPRoPE has the least perplexity at L'",
        "appendix B.2",
        (tests.less_loss,),
        _BOOKS,
    ),
    Claim(
        "open_llm",
        "DPRoPE is best on short text (Open LLM), and keeps the original's scores",
        "abstract, section 4.3",
        (ahead("open_llm"),),
        _BENCHMARK,
    ),
    Claim(
        "passkey",
        "DPRoPE finds every passkey within L'",
        "section 4.4",
        (tests.finds_all_passkeys,),
        "passkeys",
    ),
    Claim(
        "n_hat_longbench_e",
        "With too few dimensions interpolated, LongBench-E falls",
        "section 5.2",
        (ablated("longbench_e", "n_hat", tests.least_is_below),),
        _BENCHMARK,
    ),
    Claim(
        "n_hat_open_llm",
        "n̂ has little effect on Open LLM",
        "section 5.2",
        (ablated("open_llm", "n_hat", tests.alike),),
        _BENCHMARK,
    ),
    Claim(
        "intervals_longbench_e",
        "LongBench-E is the same for b = 90, 180, 360, and falls at 720",
        "section 5.3",
        (ablated("longbench_e", "intervals", tests.alike_but_excess),),
        _BENCHMARK,
    ),
    Claim(
        "intervals_open_llm",
        "b does not influence Open LLM",
        "section 5.3",
        (ablated("open_llm", "intervals", tests.alike),),
        _BENCHMARK,
    ),
    Claim(
        "time", "DPRoPE takes no more time than PI", "appendix B.2", (tests.costs_nothing,), _TIMES
    ),
    Claim("clex_time", "CLEX takes more time than PI", "appendix B.2", (tests.clex_costs,), _TIMES),
)
