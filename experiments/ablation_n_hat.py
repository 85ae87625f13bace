"""Vary n̂, the number of dimensions that DPRoPE interpolates (the paper's Tables 4 and 5).

    python -m experiments.ablation_n_hat --model tiny
    python -m experiments.ablation_n_hat --model tiny --list     print the commands and run nothing

This is the part `ablation_n_hat` of the model's suite in experiments/suites/, which says at which values of n̂
models are fine-tuned and by which benchmarks they are measured. Values that select the same pairs are measured once.
Options, checkpoints and records are those of experiments.rerun, which measures this part too.
"""

from __future__ import annotations

from experiments.kit import command_line
from experiments.suites import measure


def main() -> None:
    measure.main(__doc__, "ablation_n_hat", part="ablation_n_hat")


if __name__ == "__main__":
    command_line.run(main)
