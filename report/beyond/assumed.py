"""What the words of the pages beyond the paper assume of the records, as in report/assumed.py."""

import functools

import numpy as np

from analysis.beyond import decision, loss_by_position, needles, training
from analysis.beyond.books import BEYOND, CHANGE, WITHIN
from analysis.differences import ABOVE, LEVEL
from analysis.scores import Score, difference_over_texts
from core import ORIGINAL
from records import RESULTS, ROOT
from report.assumed import COVERING, PAPERS, RIVAL, ZERO
from report.beyond import model_view as of
from report.beyond.model_view import OnBooks
from report.model_view import View
from report.sentences import Assumptions

RULE = "LongRoPE2's rule"
COVERED = "YaRN without blend"
SIGNIFICANT = "DPRoPE, significant"
BARE = "YaRN, attention × 1.00"
WARM = "DPRoPE (n̂ = 40), attention × 1.0693"
LAST = "original, last 8k"
WARM_LAST = "original, attention × 1.0693, last 8k"


# What a sentence may say of a difference


def more(gap: Score) -> bool:
    """Above zero: by its interval or, of three books, on each."""
    if gap.low is None:
        return len(gap.texts) == 3 and min(gap.texts) > 0
    return gap.low > 0


def less(gap: Score) -> bool:
    """Below zero, by its interval."""
    return gap.high is not None and gap.high < 0


def on_each(gap: Score) -> bool:
    """Above zero on each of three books or, of a sample, of twenty."""
    return len(gap.texts) in (3, 20) and min(gap.texts) > 0


def on_some(gap: Score) -> bool:
    """Above zero on some of three books, and below on others."""
    return len(gap.texts) == 3 and min(gap.texts) < 0 < max(gap.texts)


def slightly_worse(gap: Score) -> bool:
    """By the rule of losses."""
    return decision.by_loss(gap) == decision.SLIGHTLY_WORSE


def retrieves_worse(gap: Score) -> bool:
    """By the rule of keys."""
    return decision.by_keys(gap) == "YaRN retrieves better"


def no_matter(gap: Score) -> bool:
    """By the rule of keys."""
    return decision.by_keys(gap) == decision.NO_MATTER


def _at_four(view: View) -> OnBooks:
    """Keys at s = 4."""
    return of.keys(view, 4)


losses_at_four = functools.partial(of.losses, factor=4)

# Words of a sentence, the books and two settings whose difference it is about, what it says of that
# difference, and where, if not beyond L.
Differences = tuple[tuple, ...]
SMOLLM2: Differences = (
    ("YaRN has less loss than DPRoPE at t = 0", of.losses, ZERO, RIVAL, on_each),
    ("YaRN has less loss than DPRoPE at t = 0", of.losses, PAPERS, RIVAL, on_each),
    ("YaRN has less loss than DPRoPE at t = 0", of.losses, COVERING, RIVAL, on_each),
    ("and PI has far more", of.losses, "PI", ZERO, on_each),
    ("The 20 books say the same", of.sample, RIVAL, RULE, more),
    ("The 20 books say the same", of.sample, PAPERS, RIVAL, more),
    ("The 20 books say the same", of.sample, ZERO, PAPERS, more),
    ("The 20 books say the same", of.sample, "PI", ZERO, more),
    ("Beyond L it has more loss than the paper's n̂ on", of.sample, ZERO, PAPERS, on_each),
    ("and more loss than YaRN", of.sample, ZERO, RIVAL, more),
    ("Most of that loss comes with four fast pairs", of.losses, ZERO, PAPERS, on_each),
    ("For YaRN itself its attention factor is not decided", of.losses, BARE, RIVAL, on_some),
    # keys.md
    ("retrieves better than DPRoPE at the paper's n̂", of.keys, PAPERS, RIVAL, retrieves_worse),
    ("the choice of pairs does not matter", of.keys, WARM, RIVAL, no_matter),
    ("DPRoPE's pairs then cost less within L", of.keys, WARM, RIVAL, less, WITHIN),
    ("but their cost rises more beyond it", of.keys, WARM, RIVAL, more, CHANGE),
    ("costs more than n̂ = 40 within L", of.keys, ZERO, PAPERS, more, WITHIN),
    ("within L and beyond it, and beyond", of.keys, ZERO, PAPERS, retrieves_worse),
    ("within L it lowers the nats of the model", of.keys, WARM_LAST, LAST, less, WITHIN),
    ("has less loss than YaRN beyond L", of.sample, RULE, RIVAL, less),
    ("By the same rule YaRN retrieves better", of.keys, RULE, RIVAL, retrieves_worse),
    # fine_tuned.md
    ("Outcome by the rule below, by loss", of.first_round, PAPERS, RIVAL, slightly_worse),
    ("not best after training either. Before training", of.first_round, ZERO, PAPERS, more),
    ("The rules give, by loss", of.second_round, PAPERS, RIVAL, slightly_worse),
    ("fine-tunes on different texts agree", of.first_round, PAPERS, RIVAL, slightly_worse),
    ("By loss it is the other way round", of.second_round, WARM, RIVAL, slightly_worse),
)
TINY: Differences = (
    ("though its loss is far higher", of.losses, RULE, RIVAL, more),
    ("At s = 4 it costs more than YaRN", _at_four, RULE, RIVAL, more),
    ("the covering n̂ has less loss beyond L", of.losses, "DPRoPE (n̂ = 20)", PAPERS, less),
    (
        "the covering n̂ has less loss beyond L than the paper's",
        losses_at_four,
        "DPRoPE (n̂ = 18)",
        "DPRoPE (n̂ = 32)",
        less,
    ),
    ("It raises YaRN's loss by", of.losses, "YaRN, resonance", RIVAL, more),
    ("`dprope-covered` interpolates the", losses_at_four, "DPRoPE (n̂ = 18)", COVERED, more),
)
# templates/came_out.md and templates/best.md, which README has
CAME_OUT: Differences = (
    ("The least change is not the least loss", of.sample, PAPERS, RIVAL, more),
    ("The least change is not the least loss", of.sample, ZERO, PAPERS, on_each),
    ("nearly vanishes by loss", of.first_round, PAPERS, RIVAL, slightly_worse),
    ("nearly vanishes by loss", of.second_round, PAPERS, RIVAL, slightly_worse),
    ("Untrained, retrieval tells the two apart", of.keys, PAPERS, RIVAL, retrieves_worse),
    ("below the 0.5 set beforehand", of.keys, WARM, RIVAL, no_matter),
    ("helps the unextended model, too", of.keys, WARM_LAST, LAST, less, WITHIN),
)


def _borne_out(view: View, differences: Differences) -> Assumptions:
    for words, books, ours, other, says, *where in differences:
        yield words, says(books(view).gap(ours, other, *where))


def _least(books: OnBooks, name: str) -> bool:
    """Whether a setting costs less beyond L than each other."""
    return all(more(books.gap(each, name)) for each in books.names if each != name)


def _least_loss(view: View, name: str, factor: float | None = None) -> bool:
    """The same of loss and of the comparison's methods, see :func:`of.ranked`."""
    others = (other for other, _ in of.ranked(view, factor) if other != name)
    return all(more(of.loss(view, other, name, factor)) for other in others)


def _lost_within(view: View) -> bool:
    """Whether DPRoPE loses to YaRN within L what it loses beyond, or more."""
    sample = of.sample(view)
    return all(
        sample.gap(each, where=WITHIN).mean >= sample.gap(each).mean > 0 for each in (PAPERS, ZERO)
    )


def _four_fast(view: View) -> bool:
    """Whether t = 0 interpolates four pairs more than the paper's n̂, none of them significant."""
    zero, papers, free = (of.pairs(view, each) for each in (ZERO, PAPERS, SIGNIFICANT))
    fast = zero - papers
    return len(fast) == 4 and papers <= zero and fast.isdisjoint(free)


def _by_distance(view: View) -> bool:
    """Whether YaRN retrieves better up to 11k before the question and DPRoPE from there to 14k:
    with the same attention factor, after training, and with both, by Bonferroni over the eight keys
    of each."""
    untrained, tuned = of.keys(view), of.second_round(view, of_keys=True)
    run = untrained.row(RIVAL).first
    beyond = needles.nearest_beyond(run)
    ends = needles.distances(run)[beyond] / 1024
    compared = (untrained, WARM), (tuned, PAPERS), (tuned, WARM)
    level = LEVEL / (len(compared) * len(beyond))
    for books, ours in compared:
        gaps = [books.gap(ours, RIVAL, key) for key in beyond[:6]]
        near, far = gaps[:3], gaps[3:]
        if not (all(map(more, near)) and all(map(less, far))):
            return False
        if max(map(ABOVE.p, gaps)) > level:
            return False
    return bool(ends[2] < 11 < ends[3] and ends[5] < 14 < ends[6])


def _guessed(view: View) -> bool:
    """Whether no key farther than 14k before the question costs less than a guess."""
    untrained, tuned = of.keys(view), of.second_round(view, of_keys=True)
    rows = [untrained.row(name) for name in (RIVAL, PAPERS, WARM)]
    rows += [tuned.row(name) for name in (RIVAL, PAPERS, WARM)]
    far = needles.distances(rows[0].first) > 14 * 1024
    return all(needles.by_distance(row.first)[far].min() >= needles.GUESS for row in rows)


def _does_not_pay(view: View) -> bool:
    """Whether YaRN at 16k has more loss than the unextended model at 8k."""
    return on_each(of.of_windows(view, RIVAL, "16k", "original", "8k"))


def smollm2(view: View) -> Assumptions:
    yield from _borne_out(view, SMOLLM2)
    least = _least_loss(view, RULE)
    yield "LongRoPE2's rule has the least loss of those that learn nothing", least
    rule_is_least = _least(of.sample(view), RULE)
    yield "The 20 books say the same", len(of.sample(view).gap(RULE).texts) == 20 and rule_is_least
    yield "DPRoPE is as far behind YaRN within L as beyond it, or farther", _lost_within(view)

    most = of.loss(view, ZERO, PAPERS).mean > of.loss(view, ZERO).mean / 2
    yield "Most of that loss comes with four fast pairs", _four_fast(view) and most
    names = (name for name in of.losses(view).names if name != ORIGINAL)
    dearer = all(on_each(of.loss(view, name, ORIGINAL, where=WITHIN)) for name in names)
    yield "every extended setting has more loss", dearer

    at_four = of.losses(view, 4)
    yield "At s = 4 there is one book", len(at_four.gap(SIGNIFICANT).texts) == 1
    yield "and the paper's n̂ (32) was not measured", "DPRoPE (n̂ = 32)" not in at_four.names
    free, left = (of.pairs(view, each, 4) for each in (SIGNIFICANT, "DPRoPE (n̂ = 26)"))
    yield "alone, which the covering n̂ does not interpolate", left < free and len(free - left) == 1

    ranked = [name for name, _ in of.ranked(view) if name not in ("original", "PI")]
    most = all(on_each(of.loss(view, "PI", each, where=WITHIN)) for each in ranked)
    yield "extended setting has more loss within L than the unextended model", most
    # n̂ = 30 and 48 are the pairs of "significant" and of t = 0
    other_n_hats = ("DPRoPE (n̂ = 24)", COVERING, SIGNIFICANT, "DPRoPE (n̂ = 36)", ZERO)
    gaps = (view.gap("perplexity", each, PAPERS, "16k") for each in other_n_hats)
    least = all(min(gap.texts) > 0 for gap in gaps)
    yield "the paper's 40 has the least perplexity of whole books at 16k", least

    lengths = (4096, 8192, 12288, 16384)
    last = {
        name: [length for length in lengths if view.passkeys_by_place(name)[length, 1.0]]
        for name in (RIVAL, BARE)
    }
    yield "At every length YaRN misses the passkey right before the question", not last[RIVAL]
    yield "it finds that key at 4k and at 12k", last[BARE] == [4096, 12288]

    yield f"| {decision.SLIGHT} |", True
    yield f"| {decision.NO_MATTER} | | any other | {decision.UNDECIDED} |", True
    yield "By loss, extending does not pay here", _does_not_pay(view)
    yield "From 8k to 11k before the question YaRN retrieves better", _by_distance(view)
    keys = of.keys(view)
    beyond = needles.nearest_beyond(keys.row(RIVAL).first)
    ahead = [key for key in beyond if less(keys.gap(PAPERS, RIVAL, key))]
    yield "DPRoPE is ahead in one row alone", len(ahead) == 1
    yield "Farther back than 14k neither does better", _guessed(view)
    yield "The mean over keys hides", _by_distance(view)
    yield "and beyond it more than a guess", of.keys(view).level(ZERO).mean > needles.GUESS
    yield from _fine_tuned(view)

    by_step = of.training_gaps(view, PAPERS, 16)[0]
    gone = len(by_step) == 16 and by_step[-1] < by_step[0] / 3
    yield "Most of the first step's distance is gone", gone

    yield (
        "have less loss beyond L than YaRN on each book",
        on_each(of.to_learned(view, RIVAL, 2)),
    )
    yield "Against LongRoPE2's rule it is not decided", on_some(of.to_learned(view, RULE, 2))
    yield (
        "Those learned from no scaling have more loss than those",
        on_each(of.to_learned(view, "learned, from no scaling", 2)),
    )
    context = view.results.context_length
    edge = of.wavelength(view, 16) < 2048 < of.wavelength(view, 17) < context
    bare, warm = (of.learned_factors(view, start, 2)[0] for start in ("original", "yarn"))
    turns = bare[:17].max() < 1.1 and bare[17:26].min() > 1.2
    turns_from_yarn = warm[:17].max() < 1.3 and warm[17:24].min() > 1.4
    yield "Both turn near 2,048 tokens", edge and turns and turns_from_yarn


def _one_seed(view: View) -> bool:
    """Whether each fine-tune of either round has one seed: 1 in the second."""
    second = of.second_round(view).rows + of.second_round(view, of_keys=True).rows
    first = all(len(row.seeds) == 1 for row in of.first_round(view).rows)
    return first and all(row.seeds == (1,) for row in second)


def _apart(fine_tunes: OnBooks, view: View) -> bool:
    """Whether no book that they read is one of which losses are scored, or in which keys are
    hidden."""
    read = {
        book["sha256"]
        for row in fine_tunes.rows
        for run in row.runs
        for book in of.fine_tune(view, run).data_facts["books"]
    }
    scored = {sha for by in (of.sample, of.keys) for sha in _data(by(view)).values()}
    return read.isdisjoint(scored)


def _found_alike(of_keys: OnBooks, ours: str, other: str) -> bool:
    """Whether the number of keys that two settings find, by book, differs no more than chance,
    within L and beyond it."""
    for where in (WITHIN, BEYOND):
        runs = (of_keys.row(name).first for name in (ours, other))
        by_book = needles.by_text(*runs, where=where, what=needles.FOUND)
        if not difference_over_texts(by_book[:1], by_book[1:], shared=True).holds_zero:
            return False
    return True


def _data(books: OnBooks) -> dict[str, str]:
    """The SHA-256 of each book, by its title."""
    return books.rows[0].first.run["data"]


def _fine_tuned(view: View) -> Assumptions:
    """Of templates/fine_tuned.md."""
    lost = of.sample(view).gap(ZERO, ORIGINAL, WITHIN)
    gained = (of.first_round(view).change(of.sample(view), name, WITHIN) for name in (ZERO, RIVAL))
    of_zero, of_yarn = gained
    yield "so part of that may be repair", more(lost) and of_zero.high < of_yarn.low
    yield "No book was trained on and scored", _apart(of.first_round(view), view)
    yield "share no author with a book that is scored", _apart(of.second_round(view), view)
    by_step = of.training_gaps(view, PAPERS, 1)[0]
    order = of.trained_on(view, RIVAL)["order"]
    slope = training.slope(by_step, order, first=16)
    shown = training.still_closing(by_step)
    yield "that n̂ = 40 is still closing on YaRN. That follows in part", not shown
    yield "With the books' levels taken out it is closing", slope.mean + 2 * slope.error < 0
    by_step = of.training_gaps(view, PAPERS, 1, per_book=1)[1]
    slope = training.slope(by_step, np.zeros(len(by_step)), first=16)
    closing = slope.mean + 2 * slope.error < 0 and not training.still_closing(by_step)
    yield "By this slope it is:", closing
    rounds = of.first_round(view), of.second_round(view)
    pairs = [(books.row(PAPERS), books.row(RIVAL)) for books in rounds]
    leads = [[gap.mean for gap in loss_by_position.gaps_by_range(*pair).values()] for pair in pairs]
    shrinks = [less(loss_by_position.slope(*pair)) for pair in pairs]
    yield "by loss YaRN's lead is largest within L", shrinks[0] and leads[0][0] == max(leads[0])
    yield "The second round repeats", shrinks[1] and leads[1][0] == max(leads[1])
    for words in (decision.BETTER, decision.WORSE, decision.SLIGHTLY_WORSE):
        yield f"| {words} |", True
    yield f"| {decision.IMMATERIAL} | | any other | {decision.UNDECIDED} |", True
    by_loss, by_keys = of.second_round(view), of.second_round(view, of_keys=True)
    scored = {ORIGINAL, RIVAL, PAPERS, WARM}
    by_both = {*by_loss.names} == {*by_keys.names} - {LAST} == scored
    yield "and no scaling have been scored at seed 1", by_both and _one_seed(view)
    warm = [by_keys.gap(WARM, RIVAL, where) for where in (WITHIN, BEYOND)]
    ahead = decision.by_keys(warm[1]) == "DPRoPE retrieves better" and less(warm[0])
    yield "With the same attention factor DPRoPE's pairs retrieve better after training", ahead
    yield "Found keys do not tell them apart", _found_alike(by_keys, WARM, RIVAL)
    factor = [by_keys.gap(WARM, PAPERS, where) for where in (WITHIN, BEYOND)]
    lowered = all(map(less, factor)) and factor[1].mean < -by_keys.gap(PAPERS).mean
    yield "The attention factor still lowers what a key costs after training", lowered
    yield "by keys: **no difference that matters**. n̂ = 40", no_matter(by_keys.gap(PAPERS))
    changes = functools.partial(by_keys.change, of.keys(view))
    lowered = all(less(by_loss.change(of.sample(view), RIVAL, where)) for where in (WITHIN, BEYOND))
    raised = all(more(changes(RIVAL, where)) for where in (WITHIN, BEYOND))
    yield "What YaRN gains in loss it does not gain in retrieval", lowered and raised
    yield "left what a key costs n̂ = 40 as it was", no_matter(changes(PAPERS))
    apart = functools.partial(by_keys.change_apart, of.keys(view), where=WITHIN)
    raised_less = more(changes(PAPERS, WITHIN)) and less(apart(PAPERS, RIVAL))
    yield "Within L it raised the cost of n̂ = 40's keys by less", raised_less
    alike = no_matter(apart(RIVAL, LAST)) and less(apart(PAPERS, LAST))
    alike = alike and more(changes(LAST, WITHIN))
    yield "That YaRN's keys within L cost more is not about extending", alike
    gained = (by_loss.change(of.sample(view), name, WITHIN).mean for name in (ORIGINAL, RIVAL))
    without, with_yarn = gained
    yield "is gained without scaling, too", without < with_yarn / 2 < 0
    before = less(of.sample(view).gap(ORIGINAL, where=WITHIN))
    yield "and is above it after", before and more(by_loss.gap(ORIGINAL, where=WITHIN))
    more_by_both = more(by_loss.gap(ORIGINAL)) and more(by_keys.gap(ORIGINAL))
    yield "64 steps do not stand in for a scaling", more_by_both


def tiny(view: View) -> Assumptions:
    yield from _borne_out(view, TINY)
    for factor in (2, 4):
        least = _least_loss(view, COVERED, factor)
        yield "which is YaRN without its blend, has the least loss of all methods", least
        yield "It has the least loss of all methods:", least
    yield "rule costs the least beyond L at s = 2", _least(of.keys(view), RULE)
    yield "against MrRoPE-Pro, the next", of.ranked(view)[1][0] == "MrRoPE-Pro"
    yield "Here that is what t = 0 does", of.loss(view, "DPRoPE, candidates", ZERO).mean == 0
    same_pairs = of.pairs(view, "DPRoPE (n̂ = 18)", 4) == of.pairs(view, COVERED, 4)
    yield "`dprope-covered` interpolates the same pairs", same_pairs
    learned = of.learned_factors(view, "original", 4)
    context = view.results.context_length
    edge = of.wavelength(view, 21) < context < of.wavelength(view, 24)
    jumps = learned[:, :22].max() < 1.2 and learned[:, 24:].min() > 2
    yield "What is learned from no scaling looks like `dprope-covered`", edge and jumps
    worse = more(of.to_learned(view, "learned, from YaRN", 4))
    yield "At s = 4 learning from YaRN ends with more loss", worse


def came_out(views: dict[str, View]) -> Assumptions:
    view = views["smollm2"]
    yield from _borne_out(view, CAME_OUT)
    tuned = of.second_round(view, of_keys=True)
    yield "One run a method", _one_seed(view)
    keys = of.keys(view)
    mostly = keys.gap(WARM).mean < keys.gap(PAPERS).mean / 2
    yield "mostly by YaRN's attention factor", mostly
    yield "the second leaves no difference that matters", no_matter(tuned.gap(PAPERS))
    yield "This mean hides that YaRN is better", _by_distance(view)
    yield "By loss alone, extending does not pay here", _does_not_pay(view)
    rule = _least(of.sample(view), RULE) and retrieves_worse(of.keys(view).gap(RULE))
    yield "LongRoPE2's rule is best here by loss, not by keys", rule
    warm = decision.by_keys(tuned.gap(WARM)) == "DPRoPE retrieves better"
    yield "With YaRN's attention factor DPRoPE's pairs cost less", warm


def results_beyond(views: dict[str, View]) -> Assumptions:
    """Of templates/results_beyond.md, which the page of the results has."""
    view = views["smollm2"]
    yield "has the least loss beyond L on [tiny]", _least_loss(views["tiny"], COVERED)
    ahead = less(of.sample(view).gap(RULE)) and _least_loss(view, RULE)
    yield "LongRoPE2's rule has it on", ahead
    behind = _four_fast(view) and on_each(of.loss(view, ZERO, SIGNIFICANT))
    yield "interpolates four fast pairs whose gain is sampling noise", behind


MODELS = {"smollm2": smollm2, "tiny": tiny}
PAGES = {ROOT / "README.md": came_out, RESULTS / "README.md": results_beyond}
