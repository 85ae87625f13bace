"""What each claim states of a model: functions from the records of a model to statements.

A claim is tested against the paper's own rivals, at the paper's own setting. Both are fixed before
anything is measured: the best of several is never picked by its score.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

from analysis import differences, disturbance, metrics, published
from analysis.claims.statement import CERTAIN, EXACT, TAKES, Statement
from analysis.comparison import Comparison, Row, ablations, compared, comparisons, matched
from analysis.differences import ABOVE, BELOW, CONTRADICTED, REPRODUCED, Region
from analysis.results import Record, Results
from analysis.scores import Score, counted, number, pooled, shown
from analysis.settings import extended_length
from core import SYMBOLS, discovery, rope
from core.setting import Setting, tokens

DEFAULTS = rope.method_options(rope.PROPOSED)  # of which b is the paper's own
FLUCTUATION = Region(-0.12, 0.22)  # of the average on Open LLM, in points: the paper's abstract
EXCESS = 720.0  # the b at which LongBench-E falls in the paper
ALL_KEYS = Region(low=99.5)  # whole per cents are printed
_NAT = "× 10⁻³ nat"
# Of a benchmark: what it averages.
SAMPLES = {"longbench_e": "task mean", "open_llm": "document", "ruler": "task"}
# The scores that claims are about, the first that was measured: of Open LLM the average alone, as
# all margins are; of LongBench-E what is beyond 4k words, and not the shortest prompts alone.
HEADLINES = {"longbench_e": ("Avg.>4k", "Avg.", "8k+", "4-8k"), "open_llm": ("Avg.",)}

# Losses within L and beyond it, on whole books; they are beyond the paper, and there may be no such
# folder.
losses = discovery.module("analysis.beyond.loss_by_position")
keys = discovery.module("analysis.beyond.needles")


# The disturbance


def published_disturbances(results: Results) -> Iterator[Statement]:
    """The paper's disturbances against those recomputed in float32, for a model of the paper's
    geometry."""
    if results.plain != published.GEOMETRY:
        return
    for setting, paper, average in disturbance.recomputed(disturbance.FLOAT32):
        deviation = abs(average / paper - 1)
        yield Statement(
            what=rope.METHODS[setting.method].title,
            number=Score(average),
            state="computed in float32",
            factor=setting.factor,
            paper=paper,
            beside=[("deviation", f"{100 * deviation:.2f} %")],
            unit=_NAT,
            # The paper prints three to four digits.
            verdict=EXACT if deviation < 0.005 else CONTRADICTED,
        )


def least_disturbance(results: Results) -> Iterator[Statement]:
    """DPRoPE's disturbance at t = 0 against that of each of the paper's rivals; nothing here is
    random.

    At t = 0 each pair takes the lesser of two disturbances, one of which is PI's, so it cannot be
    above PI's; it equals PI's where that is the lesser for every pair.
    """
    pairs = disturbance.of_paper() if results.plain else ()
    for rival, factor in pairs:
        if rival == rope.PROPOSED:
            continue
        ours, other = (Setting(method, (), factor) for method in (rope.PROPOSED, rival))
        average = disturbance.compute(results.plain, ours).average
        others = disturbance.compute(results.plain, other).average
        verdict = CERTAIN if rival == rope.TIME_REFERENCE else REPRODUCED
        yield Statement(
            what=ours.name,
            number=Score(average),
            state="computed in float64",
            factor=factor,
            beside=[(other.name, f"{others:.2f} {_NAT}")],
            unit=_NAT,
            verdict=verdict if average <= others else CONTRADICTED,
        )


# Losses on books


def less_is_better(results: Results) -> Iterator[Statement]:
    """The central claim: DPRoPE has less disturbance than the paper's rivals, and so less loss
    beyond L, and finds more keys there.

    DPRoPE is taken at t = 0, the least disturbance, and at the paper's n̂. The two are not compared
    with each other: their disturbances differ by noise. A correlation over a few methods, or over
    selections of pairs that contain each other, would rest on no sample.
    """
    for by in filter(None, (losses, keys)):
        for trained in (True, False):
            for rows, papers in _on_books(results, trained, by):
                pairs = [
                    (ours, other)
                    for ours in filter(None, (rows.find(rope.PROPOSED), papers))
                    for other in _rivals("disturbance", rows, ours)
                ]
                for pair in pairs:
                    less, more = (
                        disturbance.compute(results.geometry, row.setting).average for row in pair
                    )
                    if less < more:
                        beside = [("disturbances", f"{less:.2f} and {more:.2f} {_NAT}")]
                        beside += _at_the_same_factor(results, rows, *pair, by)
                        yield _difference(*pair, by=by, region=BELOW, beside=beside)


def _at_the_same_factor(
    results: Results, rows: Comparison, ours: Row, other: Row, by: ModuleType
) -> list[tuple[str, str]]:
    """What the difference beyond L is if our setting takes the other's attention factor: the choice
    of pairs alone. Nothing where that was not measured."""
    factor = round(other.setting.scaling(results.geometry).attention_factor, 4)
    options = dict(ours.setting.options) | {"attention_factor": factor}
    alike = rows.find(ours.setting.method, options)
    if factor == 1 or not alike:
        return []
    gap = shown(by.gap(alike, other), _digits(by), sign=True)
    return [(f"with {other.setting.name}'s attention factor", gap)]


def least_loss(results: Results) -> Iterator[Statement]:
    """DPRoPE has less loss beyond L than every rival, without training, as the paper's perplexities
    are."""
    for rows, ours in _on_books(results, trained=False):
        for rival in _rivals("perplexity", rows, ours) if ours else ():
            paper = published.perplexity_advantage(rival.setting.method, rival.setting.factor)
            yield _difference(ours, rival, region=BELOW, paper=paper)


def collapse(results: Results) -> Iterator[Statement]:
    """Without training: from within L to beyond it the unextended model loses more than YaRN does
    on the same books, and beyond L DPRoPE loses less than it. It takes all three."""
    for rows, ours in _on_books(results, trained=False):
        original = rows.find(rope.ORIGINAL)
        yarn = rows.find(rope.BASELINE)
        if original and yarn and ours:
            yield _difference(original, yarn, region=ABOVE, where=losses.CHANGE)
            yield _difference(ours, original, region=BELOW)


def _on_books(
    results: Results, trained: bool, by: ModuleType | None = losses
) -> Iterator[tuple[Comparison, Row | None]]:
    """Rows of one s whose losses by position, or keys, are of enough books, and DPRoPE's row at the
    paper's n̂; none without beyond/."""
    for factor in by.measured_factors(results) if by else ():
        for rows in by.samples(results, factor, trained):
            n_hat = results.n_hat.get(factor)
            yield rows, rows.find(rope.PROPOSED, {"n_hat": n_hat})


def _difference(
    row: Row,
    other: Row,
    *,
    by: ModuleType | None = losses,
    region: Region,
    where: str = "beyond L",
    beside=(),
    **more,
) -> Statement:
    """That a row's loss, or nats a key, minus another's lies in a region.

    Beside it stand on how many books it has its sign, and the same in the other places: what a
    method loses within L and beyond it alike, it does not lose by extending.
    """
    digits = _digits(by)
    per_book = (row.first.training or {}).get("per_book")
    gaps = {place: by.gap(row, other, place) for place in by.PLACES}
    gap = gaps.pop(where)
    same_sign = sum(value * gap.mean > 0 for value in gap.texts)
    side = "above 0" if gap.mean > 0 else "below 0"
    elsewhere = [(place, shown(of, digits, sign=True)) for place, of in gaps.items()]
    return Statement(
        what=f"{row.setting.name} minus {other.setting.name}",
        number=gap,
        state=row.state,
        read=f"{counted(per_book, 'sequence')} of each book" if per_book else "",
        by="loss" if by is losses else "keys",
        sample="book",
        factor=row.setting.factor,
        metric=where,
        region=region,
        beside=[(side, f"on {same_sign} of {len(gap.texts)} books"), *elsewhere, *beside],
        unit="nats per token" if by is losses else "nats a key",
        digits=digits,
        signed=True,
        **more,
    )


def _digits(by: ModuleType) -> int:
    return 3 if by is losses else 2


# Benchmarks, against the paper's rivals


def open_llm(results: Results) -> Iterator[Statement]:
    """DPRoPE is ahead of every rival on short text, and as good as the unextended model."""
    yield from ahead(results, "open_llm")
    for rows, ours in _at_papers_n_hat(results, "open_llm"):
        original = _original(results, "open_llm", ours)
        metric = _headline(results, "open_llm", ours)
        if metric and not original:
            yield Statement(
                what=ours.setting.name,
                number=ours.scores(metrics.open_llm)[metric],
                state=ours.state,
                factor=ours.setting.factor,
                metric=metric,
                beside=[(TAKES, "the unextended model's score")],
                unit="points",
            )
        elif metric:
            untrained = ", untrained" if ours.trained else ""
            yield _score_difference(
                ours,
                original,
                rows,
                experiment="open_llm",
                metric=metric,
                region=FLUCTUATION,
                what=f"{ours.setting.name} minus original{untrained}",
            )


def ahead(results: Results, experiment: str) -> Iterator[Statement]:
    """DPRoPE is ahead of every rival at every factor in a benchmark's headline."""
    for rows, ours in _at_papers_n_hat(results, experiment):
        metric = _headline(results, experiment, ours)
        for rival in _rivals(experiment, rows, ours) if metric else ():
            yield _score_difference(
                ours,
                rival,
                rows,
                experiment=experiment,
                metric=metric,
                region=ABOVE,
                paper=published.advantage(
                    experiment, rival.setting.method, ours.setting.factor, metric
                ),
            )


def _at_papers_n_hat(results: Results, experiment: str) -> list[tuple[Comparison, Row]]:
    """Rows that compare, and DPRoPE's at the paper's n̂, at each factor.

    The paper's n̂ is 5/8 of d at s = 2 and 1/2 at s = 4, whatever scores best. Fine-tuned models
    are taken first, and those without training if none was fine-tuned. There are none of a
    benchmark that was generated in the form of the real one, which tests code and no claim.
    """
    for trained in (True, False):
        found = []
        for factor, n_hat in sorted(results.n_hat.items()):
            rows = compared(results, experiment, trained, factor)
            row = rows.find(rope.PROPOSED, {"n_hat": n_hat})
            if row and not row.first.benchmark:
                found.append((rows, row))
        if found:
            return found
    return []


def _headline(results: Results, experiment: str, row: Row) -> str | None:
    """The score that a claim is about; None if it was not measured.

    RULER's is that at the greatest length beyond L and up to L': its unit is a task, and other
    lengths are no test of extending to L'.
    """
    if experiment == "ruler":
        longest = extended_length(results, row.setting.factor)
        asked = map(int, row.first.scores["lengths"])
        lengths = [each for each in asked if results.context_length < each <= longest]
        return tokens(max(lengths)) if lengths else None
    names = getattr(metrics, experiment)(row.first)
    return next((name for name in HEADLINES[experiment] if name in names), None)


def _rivals(experiment: str, rows: Comparison, ours: Row) -> list[Row]:
    """Of the paper's rivals, those that were measured as DPRoPE was, at its factor, and trained as
    long."""
    factor = ours.setting.factor
    found = (rows.find(method, factor=factor) for method in published.rivals(experiment))
    return [row for row in found if row and row.steps == ours.steps]


def _original(results: Results, experiment: str, ours: Row) -> Row | None:
    """The unextended model, if it was measured as `ours` was."""
    for rows in comparisons(results, experiment, False):
        if rows.first.alike == ours.first.alike:
            return rows.find(rope.ORIGINAL)
    return None


def _score_difference(
    row: Row,
    other: Row,
    rows: Comparison,
    *,
    experiment: str,
    metric: str,
    **stated: Any,
) -> Statement:
    """That a row's score minus another's lies in a region; the two scores, of the same seeds, stand
    beside it.

    Args:
        stated: of the statement, its `region` and `paper`, and its `what`, if it has another than
            usual.
    """
    of = getattr(metrics, experiment)
    stated.setdefault("what", f"{row.setting.name} minus {other.setting.name}")
    return Statement(
        number=differences.between(row, other, experiment, of, metric, rows),
        state=row.state,
        sample=SAMPLES[experiment],
        factor=row.setting.factor,
        metric=metric,
        beside=[
            (each.setting.name, _score(each, each.scores(of)[metric], experiment))
            for each in matched(row, other)[:2]
        ],
        unit="points",
        signed=True,
        **stated,
    )


def _score(row: Row, score: Score, experiment: str) -> str:
    """A score; where it is of one prompt a task, as a count of prompts."""
    if experiment == "ruler" and row.first.run.get("samples") == 1:
        prompts = len(row.first.run["tasks"])
        return f"{score.mean / 100 * prompts:g} of {prompts} prompts"
    return number(score.mean, 2)


# Passkeys


def finds_all_passkeys(results: Results) -> Iterator[Statement]:
    """No passkey within L' is missed, to the precision of whole per cents.

    It is not tested on a model that misses keys within L already, whatever prompts it was asked.
    The rivals stand beside it.
    """
    original = compared(results, "passkey", False).find(rope.ORIGINAL)
    within = _keys(original, results.context_length) if original else []
    for rows, ours in _at_papers_n_hat(results, "passkey"):
        longest = extended_length(results, ours.setting.factor)
        lengths = [line["length"] for line in ours.first.scores["by_length"]]
        if not any(results.context_length < each <= longest for each in lengths):
            continue  # no prompt takes this extension
        keys_found = _keys(ours, longest)
        rivals = _rivals("perplexity", rows, ours)  # the paper's figure shows the same
        beside = [(row.setting.name, _count(_keys(row, longest))) for row in rivals]
        region = ALL_KEYS
        if within:
            beside.append(("original within L", _count(within)))
            if within[0].mean < 100:  # no method can be tested
                region = None
                beside.append((TAKES, "a model that finds every key within L"))
        yield Statement(
            what=ours.setting.name,
            number=pooled(keys_found),
            state=ours.state,
            sample="prompt",
            factor=ours.setting.factor,
            region=region,
            paper=100.0,
            beside=beside,
            count=_count(keys_found),
            unit="%",
            digits=0,
        )


def _keys(row: Row, longest: int) -> list[Score]:
    """The share of passkeys found in texts of at most `longest` tokens, by each seed; empty where
    no text is so short."""
    shortest = min((line["length"] for line in row.first.scores["by_length"]), default=math.inf)
    return [metrics.passkeys_within(run, longest) for run in row.runs if shortest <= longest]


def _count(shares: list[Score]) -> str:
    """Shares of the same prompts in per cent as counts: "10 of 12", or by seed "10, 9, 11 of
    12"."""
    found = ", ".join(f"{round(share.mean / 100 * share.n)}" for share in shares)
    return f"{found} of {shares[0].n}"


# Over n̂ and b


def n_hat_longbench_e(results: Results) -> Iterator[Statement]:
    """The score at the least n̂ is below that at the greatest."""
    stated, paper = _ablation(results, "longbench_e", "n_hat")
    if stated:
        effect = paper[min(paper)] - paper[max(paper)]
        yield replace(stated[min(stated)], region=BELOW, paper=effect)


def intervals_longbench_e(results: Results) -> Iterator[Statement]:
    """The score at every b but EXCESS equals that at the paper's own, and at EXCESS it is below."""
    stated, paper = _ablation(results, "longbench_e", "intervals")
    in_excess = stated.pop(EXCESS, None)
    effect = paper.pop(EXCESS) - paper[DEFAULTS["intervals"]]
    yield from _all_alike(stated, paper)
    if in_excess:
        yield replace(in_excess, region=BELOW, paper=effect)


def open_llm_alike(results: Results, option: str) -> Iterator[Statement]:
    """The score at every n̂ equals that at the greatest, or at every b that at the paper's own."""
    return _all_alike(*_ablation(results, "open_llm", option))


def _all_alike(stated: dict[float, Statement], paper: dict[float, float]) -> Iterator[Statement]:
    """That the score at each value equals that at the reference, within a margin: the spread of the
    paper's own scores."""
    margin = max(paper.values()) - min(paper.values())
    for each in stated.values():
        yield replace(each, region=Region(-margin, margin), paper=0.0)


def _ablation(
    results: Results, experiment: str, option: str
) -> tuple[dict[float, Statement], dict[float, float]]:
    """The score at each value of an option minus the reference's, in no region yet, and the paper's
    scores; each by value.

    The reference is the greatest n̂, or the paper's own b. There is no statement if fewer than two
    values were measured in the range of the paper's table, if the paper's own b or the headline was
    not, or if the benchmark is a miniature.
    """
    name = f"{option}_{experiment}"
    paper = published.ablated(name, "Avg.")
    by_state = ablations(results, experiment, option)
    if not by_state:
        return {}, paper
    rows = by_state[-1]  # fine-tuned, where there are such rows
    # n̂ counts as a share of the dimensions.
    share = 1.0
    if option == "n_hat":
        share = results.geometry.head_dim / published.GEOMETRY.head_dim
    least = min(paper) * share
    most = max(paper) * share
    within = {value: row for value, row in rows.items() if least <= value <= most}
    if len(within) < 2 or any(row.first.benchmark for row in within.values()):
        return {}, paper
    reference_value = DEFAULTS[option] or max(within)  # n̂ has no default
    reference = within.pop(reference_value, None)
    metric = _headline(results, experiment, reference) if reference else None
    if metric is None:
        return {}, paper
    within = {value: row for value, row in within.items() if row.steps == reference.steps}
    among = compared(results, experiment, reference.trained)
    symbol = SYMBOLS[option]
    stated = {
        value: _score_difference(
            row,
            reference,
            among,
            experiment=experiment,
            metric=metric,
            what=f"{symbol} = {value:g} minus {symbol} = {reference_value:g}",
        )
        for value, row in within.items()
    }
    return stated, published.ablated(name, metric)


# The time


def time(results: Results) -> Iterator[Statement]:
    """DPRoPE's times of a training step and of a forward pass are no more than PI's, within the
    margin.

    The paper's times show no difference, so the margin is half a unit of their last digit. Both
    methods run the same operators on numbers of the same size, so that only a fault could make a
    difference.
    """
    region = Region(high=1 + published.TIME_RESOLUTION)
    for _, stated in _times(results, rope.PROPOSED):
        slower = region.verdict(stated.number) == CONTRADICTED
        yield replace(stated, region=region, verdict=CONTRADICTED if slower else CERTAIN)


def clex_time(results: Results) -> Iterator[Statement]:
    """CLEX's times of a training step and of a forward pass are more than PI's.

    A forward pass within L is no test: CLEX does not extend there, and solves nothing.
    """
    for record, stated in _times(results, "clex"):
        if stated.metric == "test" and record.run["length"] <= results.context_length:
            yield replace(stated, beside=[(TAKES, "a text that is longer than L")])
        else:
            yield replace(stated, region=Region(low=1.0))


def _times(results: Results, method: str) -> Iterator[tuple[Record, Statement]]:
    """A method's times as multiples of PI's, in no region yet, and their records."""
    for record in results.records("time_cost"):
        for setting, row, multiple in metrics.times(record):
            if setting.method == method:
                stated = Statement(
                    what=setting.name,
                    number=multiple,
                    state="",
                    sample="round",
                    factor=setting.factor,
                    metric=row["phase"],
                    unit=f"of {rope.METHODS[rope.TIME_REFERENCE].title}",
                    digits=3,
                )
                yield record, stated
