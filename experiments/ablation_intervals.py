"""Vary b, the number of intervals of the histograms that DPRoPE compares (the paper's Tables 6 and
7).

    python -m experiments.ablation_intervals --model tiny
    python -m experiments.ablation_intervals --model tiny --list    only print the commands

At s = 2, the model is fine-tuned at each b and measured. The suite of a model in
experiments/suites/ says by which benchmarks; the options are those of experiments.rerun, which
measures this ablation too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core import rope
from experiments.kit import command_line
from experiments.suites import measure
from experiments.suites.chains import Chain, Setting
from experiments.suites.steps import Step, Suite

FACTOR = 2
INTERVALS = 90, 180, 360, 720


def intervals(**options) -> list[Setting]:
    """DPRoPE at the paper's b, with more options of the method."""
    return [(rope.PROPOSED, {**options, "intervals": b}) for b in INTERVALS]


def vary_intervals(
    suite: Suite, tune: Step, steps: Iterable[Step], others: list[Setting], **options
) -> Iterator[Chain]:
    """Fine-tune the model at each b, and measure it by these steps.

    Args:
        others: settings that the suite fine-tunes anyway. One that selects the same pairs is not
            trained again.
        options: more options of DPRoPE, such as n_hat.
    """
    for setting, same in suite.distinct(intervals(**options), FACTOR, others):
        yield suite.fine_tuned(tune, setting, FACTOR, 0, steps, same)


def main() -> None:
    measure.main(__doc__, part="ablation_intervals")


if __name__ == "__main__":
    command_line.run(main)
