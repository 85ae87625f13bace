"""What the words of the repository's own pages assume of the records.

A line quotes words of a sentence as its template has them, and says whether the records bear them
out. A sentence that rests on more has a line for each. `make pages` refuses a page whose sentence
is not true any more: rewrite it in the template, and here what it assumes then.
"""

from analysis import disturbance
from analysis.claims.statement import FINE_TUNED
from records import RESULTS, ROOT
from report import audit
from report.claims_page import Tested
from report.model_view import View
from report.paper_and_code import best_epsilon, equation
from report.sentences import Assumptions

ZERO = "DPRoPE (t = 0)"
PAPERS = "DPRoPE (n̂ = 40)"  # at s = 2
COVERING = "DPRoPE (n̂ = 28)"
RIVAL = "YaRN"
# Words of SmolLM2's page, and two settings of which the second has more perplexity at 16k.
MORE_ON_EACH_BOOK = (
    ("YaRN has less perplexity than DPRoPE in each setting", RIVAL, PAPERS),
    ("YaRN has less perplexity than DPRoPE in each setting", RIVAL, COVERING),
    ("YaRN has less perplexity than DPRoPE in each setting", RIVAL, ZERO),
    ("PI has far more than both", ZERO, "PI"),
    ("DPRoPE at t = 0 has more perplexity than at the paper's n̂", PAPERS, ZERO),
    ("and at the covering n̂, though", COVERING, ZERO),
)


def llama2_7b(_: View) -> Assumptions:
    by_equation = disturbance.deviations(disturbance.EQUATION)
    yield "gives all six numbers that the paper prints", _all_six()
    yield "gives none of them with the ε = 10⁻⁸ of this page", min(by_equation) > 0.5
    yield "there is no ε for which it gives all six", _no_epsilon()


def _all_six() -> bool:
    as_released = disturbance.deviations(disturbance.FLOAT32)
    return len(as_released) == 6 and max(as_released) < 0.005


def _no_epsilon() -> bool:
    return max(disturbance.deviations(equation(best_epsilon()))) > 0.1


def smollm2(view: View) -> Assumptions:
    for words, less, more in MORE_ON_EACH_BOOK:
        gaps = view.gap("perplexity", more, less, "16k").texts
        yield words, len(gaps) == 3 and min(gaps) > 0
    yield "The paper's n̂ is 40", view.results.n_hat[2] == 40
    zero, *others = (view.disturbance(name, 2) for name in (ZERO, PAPERS, COVERING))
    yield "though no choice of pairs has less disturbance", zero < min(others)

    found = view.passkeys_by_place("original")
    context = view.results.context_length
    missed = {place for place, share in found.items() if share == 0}
    beyond = {place for place in found if place[0] > context}
    yield "The unextended model misses a key within L", missed - beyond == {(8192, 0.0)}
    yield "It finds none beyond L", beyond <= missed
    ours, rivals = (view.passkeys_by_place(name, trained=True) for name in (PAPERS, RIVAL))
    yield "are found together or missed together", {*ours.values(), *rivals.values()} == {0, 1}
    eight, five = ({place for place in of if of[place]} for of in (ours, rivals))
    counted = (len(ours), len(eight), len(five)) == (10, 8, 5)
    yield "so these are ten places", counted and five < eight
    last = [share for (_, depth), share in view.passkeys_by_place(RIVAL).items() if depth == 1.0]
    yield "YaRN misses, at every length, the key right before the question", not any(last)

    tasks = view.row("ruler", "original").first.scores["tasks"]
    single = (tasks["4096"][f"niah_single_{each}"]["mean"] for each in (1, 2))
    similar = (
        tasks[length][f"niah_multikey_{each}"]["mean"]
        for length in ("4096", "8192")
        for each in (1, 2, 3)
    )
    yield (
        "the four-bit model retrieves a single number",
        all(mean == 100 for mean in single) and not any(similar),
    )


def tiny(view: View) -> Assumptions:
    papers_at_4 = "DPRoPE (n̂ = 32)"

    def perplexity(name: str, length: str, trained: bool = False) -> float:
        return view.score("perplexity", name, length, trained, factor=2).mean

    def more(name: str, other: str, length: str, trained: bool, factor: int) -> bool:
        return view.gap("perplexity", name, other, length, trained, factor).mean > 0

    original = [perplexity("original", each) for each in ("1k", "2k", "4k")]
    yield (
        "the original model's perplexity grows from 1k to 2k and from 2k to 4k",
        original[0] < original[1] < original[2],
    )
    found = [
        view.score("passkey", "PI", "1k", trained, factor).mean
        for trained, factor in ((False, 2), (True, 2), (True, 4))
    ]
    yield "PI finds no passkey at 1k", not any(found)
    for factor, length, papers in ((2, "2k", PAPERS), (4, "4k", papers_at_4)):
        settings = (ZERO, papers)
        least = "YaRN has less perplexity at L' than DPRoPE at either"
        for trained in (False, True):
            ahead = all(more(name, RIVAL, length, trained, factor) for name in settings)
            yield f"{least} setting, without training and fine-tuned", ahead
            yield f"{least} of the paper's settings", ahead
        moved = [view.disturbance(name, factor) for name in (*settings, RIVAL)]
        yield (
            "DPRoPE at the paper's n̂ has less perplexity than at t = 0, and more disturbance",
            more(ZERO, papers, length, False, factor) and moved[0] < moved[1] < moved[2],
        )
        within = all(more(name, "original", "1k", False, factor) for name in settings)
        yield "has less perplexity than the original model, and at 1k more", within
        for experiment, metric in (
            ("longbench_e", "Avg.>L"),
            ("open_llm", "Avg."),
            ("ruler", length),
        ):
            undecided = all(
                view.gap(experiment, name, RIVAL, metric, False, factor).holds_zero
                for name in settings
            )
            yield "neither miniature decides between YaRN and DPRoPE", undecided
    beyond = [more(name, "original", "4k", False, 4) for name in (ZERO, papers_at_4)]
    yield "At 4k DPRoPE without training has less perplexity than the original", not any(beyond)
    rises = perplexity(RIVAL, "2k") < perplexity(RIVAL, "2k", trained=True)
    yield "At s = 2 it is partly damage, probably as the three books are unlike", rises
    yield "At s = 2 fine-tuning is partly damage ([below]", rises
    yield (
        "At 2k it then has more perplexity than the unextended model",
        perplexity("CLEX", "2k", trained=True) > original[1],
    )

    references = {f"DPRoPE (n̂ = {n_hat})": PAPERS for n_hat in (20, 28, 32, 36, 44, 48)}
    references |= {f"DPRoPE (b = {b})": ZERO for b in (90, 180)}
    for experiment, metric in (("longbench_e", "Avg.>L"), ("open_llm", "Avg.")):
        decided = [
            name
            for name, reference in references.items()
            if not view.gap(experiment, name, reference, metric, True, 2).holds_zero
        ]
        two = ["DPRoPE (n̂ = 20)", "DPRoPE (n̂ = 28)"] if experiment == "open_llm" else []
        yield "The miniatures do not decide between the paper's n̂ and another", decided == two
        falls = view.gap(experiment, "DPRoPE (b = 720)", ZERO, metric, True, 2).high < 0
        yield "positions of L for each interval, and both fall", falls


def claims(tested: list[list[Tested]]) -> Assumptions:
    on_models = [one for models in tested for one in models if one.measured]
    of_tiny = {one.claim.key for one in on_models if one.measured.name == "tiny"}
    yield "tiny is a test bed", of_tiny <= {"least_disturbance", "time", "clex_time"}
    seeds = {
        each.number.seeds
        for one in on_models
        if one.measured.name == "smollm2"
        for each in one.statements
        if each.state == FINE_TUNED
    }
    yield "Fine-tunes of SmolLM2 have one here", seeds <= {1}


def readme(_: dict[str, View]) -> Assumptions:
    yield "each within", _all_six()


def paper(_: dict[str, View]) -> Assumptions:
    kinds = audit.kinds(audit.checks())
    for words, kind, count in (
        ("is a judgement.", "judgement", 1),
        ("The two roundings have one cause", "rounding", 2),
        ("In the two ties above, one of two is", "tie", 2),
        ("The two omissions about LongBench-E beyond 4k", "omission", 5),
    ):
        yield words, kinds[kind] == count
    yield "are slips,", len(kinds) == len(audit.KINDS)


def paper_and_code(_: dict[str, View]) -> Assumptions:
    yield "give all six numbers of Table 3", _all_six()
    yield "No ε gives all six", _no_epsilon()


MODELS = {"llama2-7b": llama2_7b, "smollm2": smollm2, "tiny": tiny}
PAGES = {
    ROOT / "README.md": readme,
    RESULTS / "paper" / "README.md": paper,
    RESULTS / "paper-and-code.md": paper_and_code,
}
