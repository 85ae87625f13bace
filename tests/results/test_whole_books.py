"""What the page of SmolLM2-135M says of whole books is what the records hold."""

import numpy as np

from experiments.records import RESULTS
from tables import perplexity, whole_texts
from tests.readme import cell, name_of, page, signed

PAGE, PROSE = page("results/smollm2/README.md")

CONTEXT_LENGTH = 8192


def measured() -> dict[str, dict]:
    """The records of whole books without training, by the name of their row."""
    return {name_of(run): run for run in whole_texts.runs(RESULTS, "smollm2", trained=False)}


def rows() -> list[str]:
    """The lines of the table: perplexities, differences to YaRN in nats, and what 8,192 tokens more before them give."""
    runs = measured()
    lines = []
    for name, run in runs.items():
        *_, within, beyond, more = whole_texts.scores(run, runs["YaRN"], CONTEXT_LENGTH).values()
        cells = [cell(score, 1) for score in perplexity.scores(run).values()]
        cells += [signed(score) if score else "–" for score in (within, beyond)]
        lines.append(f"| {' | '.join([name, *cells, signed(more)])} |")
    return lines


def test_table():
    assert len(rows()) > 1 and set(rows()) <= set(PAGE.splitlines())


def test_how_much_was_scored():
    runs = measured()
    for run in runs.values():
        short, long = run["scores"]
        assert short["tokens"] == long["tokens"] and (run["stride"], run["bucket"]) == ([4096, 8192], 1024)
    assert f"{long['tokens']:,} scored tokens" in PROSE
    assert f"{short['windows']} windows of 8k" in PROSE and f"{long['windows']} of 16k" in PROSE
    minutes = [round(run["seconds"] / 60) for run in runs.values()]
    assert f"{min(minutes)} to {max(minutes)} minutes of one core a method" in PROSE


def test_where_the_distance_to_yarn_arises():
    runs = measured()
    losses = {name: whole_texts.losses(run) for name, run in runs.items()}
    by_hand, significant = (losses[name] for name in ("DPRoPE, n̂ = 28", "DPRoPE, significant"))
    gaps = [own - losses["YaRN"] for own in (by_hand, significant)]
    within, beyond = slice(CONTEXT_LENGTH // 1024), slice(CONTEXT_LENGTH // 1024, None)
    assert len(losses["YaRN"]) == 28 and all((np.nanmean(gap[:, beyond], axis=1) > 0).all() for gap in gaps)

    def said(values: np.ndarray, buckets: slice) -> str:
        return cell(whole_texts.average(values[:, buckets]), 3).replace("-", "−")

    assert f"n̂ = 28 has {said(by_hand - significant, beyond)} more than `dprope-significant`" in PROSE
    first, fourth, last = ([said(gap, span) for gap in gaps] for span in (slice(1), slice(3, 4), slice(6, 8)))
    assert f"n̂ = 28 differs from YaRN by {first[0]} and `dprope-significant` by {first[1]}" in PROSE
    assert f"from 3k to 4k by {fourth[0]} and {fourth[1]}" in PROSE
    assert f"in the last 2k within L by {last[0]} and {last[1]}, which is more than beyond it." in PROSE
    for gap in gaps:
        assert whole_texts.average(gap[:, 6:8])["low"] > whole_texts.average(gap[:, beyond])["high"]
    for own in losses.values():  # "All three keep their loss there"
        assert abs(whole_texts.average(own[:, beyond])["mean"] - whole_texts.average(own[:, within])["mean"]) < 0.025


def test_what_lies_further_back():
    more = {name: whole_texts.average(whole_texts.more_context(run)[:, 1:]) for name, run in measured().items()}
    assert more.pop("DPRoPE, n̂ = 28")["low"] > 0
    assert len(more) == 2 and all(change["low"] < 0 < change["high"] for change in more.values())
