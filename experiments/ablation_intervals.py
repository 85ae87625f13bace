"""Vary b, the number of intervals of the histograms that DPRoPE compares (the paper's Tables 6 and 7).

    python -m experiments.ablation_intervals --model tiny
    python -m experiments.ablation_intervals --model tiny --list     print the commands and run nothing

This is the part `ablation_intervals` of the model's suite in experiments/suites/, which says at which values of b
models are fine-tuned and by which benchmarks they are measured. Values that select the same pairs are measured once.
Options, checkpoints and records are those of experiments.rerun, which measures this part too.
"""

from __future__ import annotations

from experiments.kit import command_line
from experiments.suites import measure


def main() -> None:
    measure.main(__doc__, "ablation_intervals", part="ablation_intervals")


if __name__ == "__main__":
    command_line.run(main)
