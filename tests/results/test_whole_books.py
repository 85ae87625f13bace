"""What the page of SmolLM2-135M says of whole books is what the records hold."""

import re
from itertools import pairwise

import numpy as np
import pytest

from experiments.records import RESULTS
from tables import perplexity, whole_texts
from tables.extension import paired_difference, same_text
from tests.readme import cell, name_of, page, signed

PAGE, PROSE = page("results/smollm2/README.md")

CONTEXT_LENGTH = 8192
BEYOND = slice(CONTEXT_LENGTH // 1024, None)
SETTINGS = ("t = 0", "n̂ = 40", "n̂ = 36", "significant", "n̂ = 28", "n̂ = 24")  # ever fewer pairs interpolated
SAID = {  # what fine-tuned methods are called in prose, but for CLEX, which is none untrained
    "PI": "PI",
    "DPRoPE, t = 0": "t = 0",
    "DPRoPE, n̂ = 28": "n̂ = 28",
    "DPRoPE, significant": "`dprope-significant`",
}
SPANS = ((0, 1), (1, 2), (2, 4), (4, 6), (6, 8), (8, 12), (12, 16))  # of positions, in buckets of 1,024


def measured(trained: bool = False) -> dict[str, dict]:
    """The records of whole books, without training or fine-tuned, by the name of their row."""
    return {name_of(run): run for run in whole_texts.runs(RESULTS, "smollm2", trained)}


def rows(trained: bool) -> list[str]:
    """The lines of the table: perplexities, differences to YaRN in nats, and what 8,192 tokens more before them give.

    Of the fine-tuned, before that last: the change by training beyond L.
    """
    runs, untrained = measured(trained), measured()
    lines = []
    for name, run in runs.items():
        *_, within, beyond, more = whole_texts.scores(run, runs["YaRN"], CONTEXT_LENGTH).values()
        scores = [within, beyond]
        if trained:
            scores.append(change_by_training(run, untrained[name]) if name in untrained else None)
        cells = [cell(score, 1) for score in perplexity.scores(run).values()]
        cells += [signed(score) if score else "–" for score in (*scores, more)]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


def change_by_training(run: dict, untrained: dict) -> dict:
    """The loss beyond L of a fine-tuned model minus that of the same untrained, paired by window."""
    return whole_texts.average((whole_texts.losses(run) - whole_texts.losses(untrained))[:, BEYOND])


def position_rows(trained: bool) -> list[str]:
    """The lines of the table of differences to YaRN by position."""
    lines = []
    for name, gap in gaps(trained).items():
        cells = [signed(whole_texts.average(gap[:, slice(*span)])) for span in SPANS]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


def gaps(trained: bool = False) -> dict[str, np.ndarray]:
    """By how much a method's losses are above YaRN's: [windows, buckets]."""
    losses = {name: whole_texts.losses(run) for name, run in measured(trained).items()}
    yarn = losses.pop("YaRN")
    return {name: own - yarn for name, own in losses.items()}


@pytest.mark.parametrize("trained", (False, True))
@pytest.mark.parametrize("made", (rows, position_rows))
def test_tables(made, trained):
    lines = made(trained)
    assert lines and set(lines) <= set(PAGE.splitlines())


def test_how_much_was_scored():
    runs, tuned = measured(), measured(trained=True)
    for run in (*runs.values(), *tuned.values()):
        short, long = run["scores"]
        assert short["tokens"] == long["tokens"] and (run["stride"], run["bucket"]) == ([4096, 8192], 1024)
    assert f"{long['tokens']:,} scored tokens" in PROSE
    assert f"{short['windows']} windows of 8k" in PROSE and f"{long['windows']} of 16k" in PROSE
    minutes = [round(run["seconds"] / 60) for run in runs.values()]
    assert f"{min(minutes)} to {max(minutes)} minutes of one core a method" in PROSE
    minutes = sorted(round(run["seconds"] / 60) for run in tuned.values())
    clex = round(tuned["CLEX"]["seconds"] / 60)
    assert minutes.pop() == clex
    assert f"in the same windows ({minutes[0]} to {minutes[-1]} minutes of one core each and CLEX's {clex}," in PROSE
    short, _ = perplexity.scores(runs["original"]).values()
    assert f"like the unextended model, which has {cell(short, 1)} untrained." in PROSE


def test_the_order_is_that_of_the_beginnings():
    beginnings = {name_of(run): run for run in same_text(RESULTS, "smollm2")}
    before = {name: paired_difference(beginnings[name], beginnings["YaRN"], 64)["mean"] for name in gaps()}
    beyond = {name: whole_texts.average(gap[:, BEYOND])["mean"] for name, gap in gaps().items()}
    assert sorted(beyond, key=beyond.get) == sorted(before, key=before.get)


def test_where_the_original_ends():
    by_method = gaps()
    own = [whole_texts.average(by_method["original"][:, [bucket]]) for bucket in range(16)]
    within = whole_texts.average(by_method["original"][:, : BEYOND.start])["mean"]
    assert own[BEYOND.start]["mean"] == pytest.approx(within, abs=1e-3) and within < 0
    assert f"level with it in the next 1,024, {signed(own[BEYOND.start + 1])}," in PROSE
    above_pi = [score["mean"] > whole_texts.average(by_method["PI"][:, [i]])["mean"] for i, score in enumerate(own)]
    assert above_pi == [position >= 12 for position in range(16)]


def test_where_the_distances_to_yarn_arise():
    by_method = gaps()
    above = {name: np.count_nonzero(np.nanmean(gap[:, BEYOND], axis=1) > 0) for name, gap in by_method.items()}
    assert above.pop("NTK-aware") == 26 and set(above.values()) == {28} == {len(gap) for gap in by_method.values()}
    zero, most, more, significant, by_hand, fewest = (by_method[f"DPRoPE, {setting}"] for setting in SETTINGS)
    for said, larger, smaller in (
        ("n̂ = 36 has {} more", more, most),
        ("`dprope-significant` {} more than n̂ = 36", significant, more),
        ("n̂ = 28 {} more than that", by_hand, significant),
        ("n̂ = 24 {} more again", fewest, by_hand),
        ("t = 0 {} more than n̂ = 40", zero, most),
    ):
        assert said.format(cell(whole_texts.average((larger - smaller)[:, BEYOND]), 3)) in PROSE
    spans = {name: [whole_texts.average(gap[:, slice(*s)]) for s in SPANS] for name, gap in by_method.items()}
    for name in ("PI", "DPRoPE, t = 0"):
        means = [score["mean"] for score in spans[name]]
        assert means[0] > 0.7 * max(means)
    near, far = ([spans[f"DPRoPE, {setting}"][i]["mean"] for setting in SETTINGS[1:]] for i in (0, -1))
    for larger, smaller in pairwise((most, more, significant, by_hand, fewest)):
        first, last = (whole_texts.average((smaller - larger)[:, part]) for part in (slice(1), slice(12, None)))
        assert first["high"] < 0 < last["low"]
    for said, first, last in zip(
        ("n̂ = 40 has {} in the first 1,024 positions and {} in the last 4k,", "n̂ = 36 {} and {},")
        + ("`dprope-significant`, which is n̂ = 30, {} and {},", "n̂ = 28 {} and {},", "n̂ = 24 {} and {}, and each step"),
        near,
        far,
    ):
        assert said.format(*(f"{round(mean, 3) + 0:.3f}".replace("-", "−") for mean in (first, last))) in PROSE
    ntk = spans["NTK-aware"]
    assert ntk[0]["high"] < 0 and ntk[1]["high"] < 0 and max(ntk, key=lambda score: score["mean"]) is ntk[-1]


def test_what_lies_further_back():
    runs = measured()
    assert f"the original {np.subtract(*_beyond_and_within(runs.pop('original'))):.3f}," in PROSE
    more = {name: whole_texts.average(whole_texts.more_context(run)[:, 1:]) for name, run in runs.items()}
    rise = {name: np.subtract(*_beyond_and_within(run)) for name, run in runs.items()}
    rising = {name: rise.pop(name) for name in ("DPRoPE, n̂ = 24", "PI")}
    assert "wavelength is just beyond L, {:.3f}, and PI {:.3f}; the others have less".format(*rising.values()) in PROSE
    assert min(rising.values()) > 0 > max(rise.values())
    added = (cell(more.pop(name), 3) for name in ("PI", "DPRoPE, n̂ = 24"))
    assert "with PI they add {}, with n̂ = 24 {}.".format(*added) in PROSE
    assert f"by no more than {max(abs(change['mean']) for change in more.values()):.3f} nats" in PROSE
    assert {name for name, change in more.items() if change["high"] < 0} == {"DPRoPE, t = 0", "DPRoPE, n̂ = 40"}
    assert {name for name, change in more.items() if change["low"] > 0} == {"DPRoPE, n̂ = 28", "NTK-aware"}


def test_what_fine_tuning_changes():
    before, after = gaps(), gaps(trained=True)
    assert [name for name in after if name != "CLEX"] == list(SAID)
    distances = {name: [_said(gap[name][:, BEYOND]) for gap in (before, after)] for name in SAID}
    orders = ([whole_texts.average(gap[name][:, BEYOND])["mean"] for name in SAID] for gap in (before, after))
    assert all(np.array_equal(np.argsort(order), (3, 2, 1, 0)) for order in orders)
    said = ", of ".join("{} from {} to {}".format(SAID[name], *distances[name]) for name in SAID)
    assert f"the distance from YaRN beyond L of {said} nats" in PROSE
    said = "PI goes from {} to {}, t = 0 from {} to {}, n̂ = 28 from {} to {} and `dprope-significant` from {} to {}."
    assert said.format(*(end for ends in distances.values() for end in ends)) in page("README.md")[1]
    for gap in after.values():
        assert len(gap) == 28 and (np.nanmean(gap[:, BEYOND], axis=1) > 0).all()
    _, (was_zero, zero), (was_by_hand, by_hand), (was_significant, significant) = (
        [gap[name] for gap in (before, after)] for name in SAID
    )
    said = _said((by_hand - significant)[:, BEYOND])
    assert said[:5] == _said((was_by_hand - was_significant)[:, BEYOND])[:5]
    assert f"n̂ = 28 has {said} more than `dprope-significant`, as it had" in PROSE
    said = (_said((larger - smaller)[:, BEYOND]) for larger, smaller in ((zero, by_hand), (was_zero, was_by_hand)))
    assert "t = 0 has {} more again, where it had {}.".format(*said) in PROSE
    above_zero = (after["CLEX"] - zero)[:, BEYOND]
    assert f"CLEX has {_said(above_zero)} more than t = 0," in PROSE
    (apart,) = re.findall(r"the second and the third differ by (0\.\d+) at most", PROSE)
    assert 0 < np.nanmean(above_zero) < float(apart)
    for gap in (zero, after["CLEX"], after["PI"]):
        change = whole_texts.average(gap[:, 12:] - gap[:, :1])
        assert change["low"] < 0 < change["high"]
    assert f"1,024 positions, {_said(by_hand[:, :1])} and {_said(significant[:, :1])}, and furthest" in PROSE
    for gap in (by_hand, significant):
        first = whole_texts.average(gap[:, :1])
        assert first["low"] < 0 < first["high"] and set(np.argsort(np.nanmean(gap, axis=0))[-3:]) == {6, 7, 8}


def test_what_training_gives():
    tuned, untrained = measured(trained=True), measured()
    losses, original = ({name: whole_texts.losses(run) for name, run in runs.items()} for runs in (tuned, untrained))
    gains = {name: original[name] - own for name, own in losses.items() if name in original}
    of_yarn = [whole_texts.average(gains["YaRN"][:, slice(*span)])["mean"] for span in SPANS]
    assert f"YaRN gains {min(of_yarn):.3f} to {max(of_yarn):.3f} at any position" in PROSE
    for name, said in SAID.items():
        more = (_said((gains[name] - gains["YaRN"])[:, span]) for span in (slice(1), slice(1, None)))
        assert "{} {} and {}".format(said, *more) in PROSE
    less = {name: (original["original"] - own)[:, : BEYOND.start] for name, own in losses.items()}
    said = (_said(-less.pop(name)) for name in ("DPRoPE, t = 0", "CLEX", "PI"))
    assert "t = 0 has {} more, CLEX {} and PI {}.".format(*said) in PROSE
    for name, gap in less.items():
        assert f"{SAID.get(name, name)} by {_said(gap)}" in PROSE and whole_texts.average(gap)["low"] > 0
    more = {name: whole_texts.average(whole_texts.more_context(run)[:, 1:]) for name, run in tuned.items()}
    assert {name for name, change in more.items() if change["high"] < 0} == {"DPRoPE, t = 0", "CLEX"}
    assert {name for name, change in more.items() if change["low"] > 0} == {"DPRoPE, n̂ = 28"}


def _said(gap: np.ndarray) -> str:
    return cell(whole_texts.average(gap), 3).replace("-", "−")


def _beyond_and_within(run: dict) -> tuple[float, float]:
    """The mean loss at the positions beyond L and at those below it."""
    own = whole_texts.losses(run)
    return tuple(whole_texts.average(own[:, part])["mean"] for part in (BEYOND, slice(BEYOND.start)))
