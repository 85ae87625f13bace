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

CLAIMS = (
    Claim(
        key="table_3",
        text="Table 3: the disturbance of PI, YaRN and DPRoPE",
        where="section 5.1",
        takes=_GEOMETRY,
        states=statements.published_disturbances,
    ),
    Claim(
        key="least_disturbance",
        text="DPRoPE has the least disturbance",
        where="abstract, section 5.1",
        takes=_GEOMETRY,
        states=statements.least_disturbance,
        on_test_bed=True,
    ),
    Claim(
        key="less_is_better",
        text="Less disturbance extends a model better",
        where="section 5.1",
        takes=_BOOKS,
        states=statements.less_is_better,
    ),
    Claim(
        key="over_t",
        text="Within DPRoPE, over t, less disturbance scores more (Figure 5)",
        where="section 5.1",
        takes=_BENCHMARK,
    ),
    Claim(
        key="collapse",
        text="Without extension a model collapses beyond L; extended it does not",
        where="appendix B.2",
        takes=_BOOKS,
        states=statements.collapse,
    ),
    Claim(
        key="longbench_e",
        text="DPRoPE is best on LongBench-E beyond L",
        where="section 4.2",
        takes=_BENCHMARK,
        states=partial(statements.ahead, experiment="longbench_e"),
    ),
    Claim(
        key="degrades",
        text="Beyond L DPRoPE keeps its scores, where PI and YaRN degrade",
        where="section 4.2",
        takes=f"scores by length of {_BENCHMARK}",
    ),
    Claim(
        key="longer",
        text="DPRoPE does better on models of longer L",
        where="limitations",
        takes="fine-tunes of models of other L",
    ),
    Claim(
        key="ruler",
        text="DPRoPE is best on RULER",
        where="appendix B.2",
        takes="RULER of DPRoPE and a rival",
        states=partial(statements.ahead, experiment="ruler"),
    ),
    Claim(
        key="perplexity",
        text="Untrained, DPRoPE has the least perplexity at L'",
        where="appendix B.2",
        takes=_BOOKS,
        states=statements.least_loss,
    ),
    Claim(
        key="open_llm",
        text="DPRoPE is best on short text (Open LLM), and keeps the original's scores",
        where="abstract, section 4.3",
        takes=_BENCHMARK,
        states=statements.open_llm,
    ),
    Claim(
        key="passkey",
        text="DPRoPE finds every passkey within L'",
        where="section 4.4",
        takes="passkeys",
        states=statements.finds_all_passkeys,
    ),
    Claim(
        key="n_hat_longbench_e",
        text="With too few dimensions interpolated, LongBench-E falls",
        where="section 5.2",
        takes=_BENCHMARK,
        states=statements.n_hat_longbench_e,
    ),
    Claim(
        key="n_hat_open_llm",
        text="n̂ has little effect on Open LLM",
        where="section 5.2",
        takes=_BENCHMARK,
        states=statements.n_hat_open_llm,
    ),
    Claim(
        key="intervals_longbench_e",
        text="LongBench-E is the same for b = 90, 180, 360, and falls at 720",
        where="section 5.3",
        takes=_BENCHMARK,
        states=statements.intervals_longbench_e,
    ),
    Claim(
        key="intervals_open_llm",
        text="b does not influence Open LLM",
        where="section 5.3",
        takes=_BENCHMARK,
        states=statements.intervals_open_llm,
    ),
    Claim(
        key="time",
        text="DPRoPE takes no more time than PI",
        where="appendix B.2",
        takes=_TIMES,
        states=statements.time,
        on_test_bed=True,
    ),
    Claim(
        key="clex_time",
        text="CLEX takes more time than PI",
        where="appendix B.2",
        takes=_TIMES,
        states=statements.clex_time,
        on_test_bed=True,
    ),
)
