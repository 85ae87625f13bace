"""What the words of the pages beyond the paper assume of the records, as in report/assumed.py."""

import itertools
from collections.abc import Iterable, Sequence

from analysis.beyond import decision, needles, training
from analysis.beyond.books import CHANGE, WITHIN
from analysis.scores import Score
from records import RESULTS, ROOT
from report.assumed import PAPERS, RIVAL, ZERO
from report.beyond import model_view as of
from report.model_view import View
from report.sentences import Assumptions

RULE = "LongRoPE2's rule"
COVERED = "YaRN without blend"
SIGNIFICANT = "DPRoPE, significant"
BARE = "YaRN, attention × 1.00"
WARM = "DPRoPE (n̂ = 40), attention × 1.07"
LAST = "original, last 8k"
WARM_LAST = "original, attention × 1.07, last 8k"


def _on_each(score: Score, books: int = 3) -> bool:
    """More on each of so many books."""
    return len(score.texts) == books and min(score.texts) > 0


def _on_some(score: Score) -> bool:
    """More on some of three books, and less on others."""
    return len(score.texts) == 3 and min(score.texts) < 0 < max(score.texts)


def _in_order(view: View, names: Sequence[str]) -> bool:
    """Whether on 20 books each has less loss beyond L than the next, and its interval says so."""
    gaps = [of.sample(view).gap(more, less) for less, more in itertools.pairwise(names)]
    return all(gap.low > 0 and len(gap.texts) == 20 for gap in gaps)


def _least(view: View, name: str, factor: float | None = None) -> Iterable[Score]:
    """The loss beyond L of all other methods minus that of one."""
    others = (other for other, _ in of.ranked(view, factor) if other != name)
    return [of.loss(view, other, name, factor) for other in others]


def _lost_within(view: View) -> bool:
    """Whether DPRoPE loses to YaRN within L nearly what it loses beyond."""
    sample = of.sample(view)
    return all(
        sample.gap(each, where=WITHIN).mean > 0.95 * sample.gap(each).mean
        for each in (PAPERS, ZERO)
    )


def _costs_least(view: View, name: str) -> bool:
    """Whether a setting's keys beyond L cost less than those of each other, and their interval says
    so."""
    keys = of.keys(view)
    return all(keys.gap(each, name).low > 0 for each in keys.names if each != name)


def smollm2(view: View) -> Assumptions:
    covering = "DPRoPE (n̂ = 28)"
    by_rank = (RULE, RIVAL, PAPERS, ZERO, "PI")
    behind = all(_on_each(of.loss(view, each)) for each in (ZERO, PAPERS, covering))
    far = _on_each(of.loss(view, "PI", ZERO))
    yield "YaRN has less loss than DPRoPE at t = 0, at the paper's n̂ (40)", behind and far
    yield (
        "LongRoPE2's rule has the least loss of the methods that learn nothing",
        all(map(_on_each, _least(view, RULE))),
    )
    yield "The 20 books say the same", _in_order(view, by_rank)

    yield "DPRoPE is about as far behind YaRN within L as beyond it", _lost_within(view)
    yield (
        "Beyond L it has more loss than the paper's n̂ on",
        _on_each(of.sample(view).gap(ZERO, PAPERS), 20),
    )
    yield "and more loss than YaRN", of.sample(view).gap(ZERO).low > 0

    zero, papers, free = (of.pairs(view, each) for each in (ZERO, PAPERS, SIGNIFICANT))
    fast = zero - papers
    four = len(fast) == 4 and papers <= zero and fast.isdisjoint(free)
    yield "Most of it comes with four fast pairs", four and _on_each(of.loss(view, ZERO, PAPERS))
    yield "For YaRN itself its attention factor is not decided", _on_some(of.loss(view, BARE))

    at_four = of.losses(view, 4)
    yield "At s = 4 there is one book", len(at_four.gap(SIGNIFICANT).texts) == 1
    yield "and the paper's n̂ (32) was not measured", "DPRoPE (n̂ = 32)" not in at_four.names
    free, left = (of.pairs(view, each, 4) for each in (SIGNIFICANT, "DPRoPE (n̂ = 26)"))
    yield "alone, which the covering n̂ does not interpolate", left < free and len(free - left) == 1

    listed = (RIVAL, "NTK-aware", ZERO, PAPERS, covering, SIGNIFICANT)
    more = all(_on_each(of.loss(view, each, "original", where=WITHIN)) for each in listed)
    ranked = [name for name, _ in of.ranked(view) if name not in ("original", "PI")]
    most = all(_on_each(of.loss(view, "PI", each, where=WITHIN)) for each in ranked)
    yield "extended setting has more loss within L than the unextended model", more and most
    # n̂ = 30 and 48 are the pairs of "significant" and of t = 0
    other_n_hats = ("DPRoPE (n̂ = 24)", covering, SIGNIFICANT, "DPRoPE (n̂ = 36)", ZERO)
    gaps = (view.gap("perplexity", each, PAPERS, "16k") for each in other_n_hats)
    least = all(min(gap.texts) > 0 for gap in gaps)
    yield "the paper's 40 has the least perplexity of whole books at 16k", least

    lengths = (4096, 8192, 12288, 16384)
    last = {
        name: [length for length in lengths if view.passkeys_by_place(name)[length, 1.0]]
        for name in (RIVAL, BARE)
    }
    yield "At every length YaRN misses the key right before the question", not last[RIVAL]
    yield "it finds that key at 4k and at 12k", last[BARE] == [4096, 12288]

    yield from _keys(view)
    yield from _fine_tuned(view)

    by_step = of.training_gaps(view, PAPERS, 16)[0]
    gone = len(by_step) == 16 and by_step[-1] < by_step[0] / 3
    yield "Most of the first step's distance is gone", gone

    yield (
        "have less loss beyond L than YaRN on each book",
        _on_each(of.to_learned(view, RIVAL, 2)),
    )
    yield "Against LongRoPE2's rule it is not decided", _on_some(of.to_learned(view, RULE, 2))
    yield (
        "Those that were learned from no scaling have more loss on each book",
        _on_each(of.to_learned(view, "learned, from no scaling", 2)),
    )
    context = view.results.context_length
    edge = of.wavelength(view, 16) < 2048 < of.wavelength(view, 17) < context
    bare, warm = (of.learned_factors(view, start, 2)[0] for start in ("original", "yarn"))
    turns = bare[:17].max() < 1.1 and bare[17:26].min() > 1.2
    turns_from_yarn = warm[:17].max() < 1.3 and warm[17:24].min() > 1.4
    yield "Both turn near 2,048 tokens", edge and turns and turns_from_yarn


def _keys(view: View) -> Assumptions:
    """Of templates/keys.md."""
    keys = of.keys(view)
    pairs_alone = keys.gap(WARM)
    better = decision.by_keys(keys.gap(PAPERS)) == "YaRN retrieves better"
    yield "YaRN retrieves better than DPRoPE at the paper's n̂.** Beyond L it finds", better
    yield (
        "With the same attention factor the choice of pairs does not matter",
        decision.by_keys(pairs_alone) == decision.NO_MATTER,
    )
    yield (
        "DPRoPE's pairs then cost less within L, but their cost rises more beyond it",
        keys.gap(WARM, where=WITHIN).high < 0 < keys.gap(WARM, where=CHANGE).low,
    )
    yield (
        "and beyond it more than a guess. There it finds",
        decision.by_keys(keys.gap(ZERO, PAPERS), "t = 0", "n̂ = 40") == "n̂ = 40 retrieves better"
        and keys.gap(ZERO, PAPERS, WITHIN).low > 0
        and keys.level(ZERO).mean > needles.GUESS,
    )
    sharper = keys.gap(WARM_LAST, LAST, WITHIN).high < 0
    yield "it lowers the nats of the model that is not extended within L, too", sharper
    paid = of.of_windows(view, RIVAL, "16k", "original", "8k")
    yield "By loss, extending does not pay here", _on_each(paid)
    yield f"| {decision.SLIGHT} |", True
    yield f"| {decision.NO_MATTER} | | any other | {decision.UNDECIDED} |", True


def _fine_tuned(view: View) -> Assumptions:
    """Of templates/fine_tuned.md."""
    tuned = of.first_round(view)
    slightly = decision.by_loss(tuned.gap(PAPERS)) == decision.SLIGHTLY_WORSE
    yield "**YaRN is ahead by less than matters**", slightly
    behind = tuned.gap(ZERO, PAPERS).low > 0
    yield "least change is not best after training either. Before training", behind
    lost = of.sample(view).gap(ZERO, "original", WITHIN).mean
    repair = lost > -of.by_training(view, ZERO, WITHIN).mean / 2
    yield "that it gained there more than half is repair", repair
    titles = " ".join(book["title"] for book in of.trained_on(view, RIVAL)["books"])
    yield "No book was trained on and scored", "Divine" not in titles
    by_step, *_ = of.training_gaps(view, PAPERS, 1)
    order = of.trained_on(view, RIVAL)["order"]
    slope = training.slope(by_step, order, first=16)
    shown = training.still_closing(by_step)
    yield "that n̂ = 40 is still closing on YaRN. That follows in part", not shown
    yield "with the books' levels taken out it is", slope.mean + 2 * slope.error < 0
    for words in (decision.BETTER, decision.WORSE, decision.SLIGHTLY_WORSE):
        yield f"| {words} |", True
    yield f"| {decision.IMMATERIAL} | | any other | {decision.UNDECIDED} |", True
    second = of.second_round(view).names + of.second_round(view, of_keys=True).names
    yield "that takes a fine-tune without scaling, which was planned", "original" not in second
    yield "A second round is [planned]", not second
    yield "None of it has been scored yet", not second


def tiny(view: View) -> Assumptions:
    papers = {2: PAPERS, 4: "DPRoPE (n̂ = 32)"}
    covering = {2: "DPRoPE (n̂ = 20)", 4: "DPRoPE (n̂ = 18)"}
    for factor in papers:
        least = all(gap.low > 0 for gap in _least(view, COVERED, factor))
        yield "which is YaRN without its blend, has the least loss of all methods", least
        yield "It has the least loss of them", least
    yield "rule costs the least beyond L at s = 2", _costs_least(view, RULE)
    yield "though its loss is far higher", of.loss(view, RULE).low > 0
    at_four = of.OnBooks(needles, needles.sampled(view.results, 4))
    yield "At s = 4 it costs more than YaRN", at_four.gap(RULE).low > 0
    for factor in papers:
        ahead = of.loss(view, covering[factor], papers[factor], factor).high < 0
        yield "the covering n̂ has less loss beyond L than the paper's", ahead
    yield "against MrRoPE-Pro, the next", of.ranked(view)[1][0] == "MrRoPE-Pro"
    same = of.loss(view, "DPRoPE, candidates", ZERO).mean == 0
    yield "Here that is what t = 0 does", same
    yield "It raises YaRN's loss by", of.loss(view, "YaRN, resonance").low > 0
    same_pairs = of.pairs(view, covering[4], 4) == of.pairs(view, COVERED, 4)
    lower = of.loss(view, covering[4], COVERED, 4).low > 0
    yield "`dprope-covered` interpolates the same pairs", same_pairs and lower
    learned = of.learned_factors(view, "original", 4)
    context = view.results.context_length
    edge = of.wavelength(view, 21) < context < of.wavelength(view, 24)
    jumps = learned[:, :22].max() < 1.2 and learned[:, 24:].min() > 2
    yield "What is learned from no scaling also looks like `dprope-covered`", edge and jumps
    more = of.to_learned(view, "learned, from YaRN", 4).low > 0
    yield "At s = 4 learning from YaRN ends with more loss", more


def came_out(views: dict[str, View]) -> Assumptions:
    """Of templates/came_out.md and templates/best.md, which README has."""
    view = views["smollm2"]
    keys = of.keys(view)
    order = of.sample(view).gap(PAPERS).low > 0 and _on_each(of.sample(view).gap(ZERO, PAPERS), 20)
    yield "The least change is not the least loss", order
    yield "Within the context it has about as much more", _lost_within(view)
    slightly = decision.by_loss(of.first_round(view).gap(PAPERS)) == decision.SLIGHTLY_WORSE
    yield "the second difference nearly vanishes by loss", slightly
    better = decision.by_keys(keys.gap(PAPERS)) == "YaRN retrieves better"
    even = decision.by_keys(keys.gap(WARM)) == decision.NO_MATTER
    yield "Retrieval tells the two apart, by YaRN's attention factor", better and even
    yield "below the 0.5 set beforehand", even
    sharper = keys.gap(WARM_LAST, LAST, WITHIN).high < 0
    yield "That factor helps the unextended model within its context, too", sharper
    paid = of.of_windows(view, RIVAL, "16k", "original", "8k")
    yield "By loss alone, extending does not pay here", _on_each(paid)
    others = [each for each in of.sample(view).names if each != RULE]
    best = all(of.sample(view).gap(each, RULE).low > 0 for each in others)
    yield "LongRoPE2's rule is best on SmolLM2 by loss", best
    yield (
        "more loss than YaRN beyond the context, but by keys",
        of.loss(views["tiny"], RULE).low > 0,
    )
    yield "but by keys it is best there", _costs_least(views["tiny"], RULE)


def results_beyond(views: dict[str, View]) -> Assumptions:
    """Of templates/results_beyond.md, which the page of the results has."""
    smollm2, tiny = views["smollm2"], views["tiny"]
    least = all(gap.low > 0 for gap in _least(tiny, COVERED))
    yield "has the least loss beyond L on [tiny]", least
    ahead = of.sample(smollm2).gap(RULE).high < 0 and all(map(_on_each, _least(smollm2, RULE)))
    yield "LongRoPE2's rule has it on", ahead
    behind = _on_each(of.loss(smollm2, ZERO, SIGNIFICANT))
    yield "On SmolLM2 dividing a few fast pairs by all of s costs", behind


MODELS = {"smollm2": smollm2, "tiny": tiny}
PAGES = {ROOT / "README.md": came_out, RESULTS / "README.md": results_beyond}
