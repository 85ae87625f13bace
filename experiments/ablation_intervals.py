"""Vary b, the number of intervals of the histograms that DPRoPE compares (the paper's Tables 6 and
7).

    python -m experiments.ablation_intervals --model tiny
    python -m experiments.ablation_intervals --model tiny --list    only print the commands

At s = 2, the model is fine-tuned at each b and measured. The suite of a model in
experiments/suites/ says by which benchmarks, and smollm2's leaves out the training; the options are
those of experiments.rerun, which measures this ablation too.
"""

from experiments import rerun
from experiments.kit import command_line


def main() -> None:
    rerun.main(__doc__, part="ablation_intervals")


if __name__ == "__main__":
    command_line.run(main)
