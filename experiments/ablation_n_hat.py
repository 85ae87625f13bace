"""Vary n̂, the number of dimensions that DPRoPE interpolates (the paper's Tables 4 and 5).

    python -m experiments.ablation_n_hat --model tiny
    python -m experiments.ablation_n_hat --model tiny --list     print the commands and run nothing

At s = 2, the model is fine-tuned at each n̂ and measured. The suite of a model in
experiments/suites/ says by which benchmarks, and smollm2's leaves out the training; the options are
those of experiments.rerun, which measures this ablation too.
"""

from __future__ import annotations

from core import rope
from experiments import rerun
from experiments.base_models.model import BaseModel
from experiments.kit import command_line
from experiments.suites.suite import Setting

SHARES = 96 / 128, 88 / 128, 80 / 128, 72 / 128, 64 / 128, 56 / 128  # of d; the paper's d is 128


def n_hats(model: BaseModel) -> list[Setting]:
    """DPRoPE at the paper's n̂, as shares of the model's head dimension d."""
    half = model.geometry.head_dim / 2
    return [(rope.PROPOSED, {"n_hat": 2 * round(share * half)}) for share in SHARES]


def main() -> None:
    rerun.main(__doc__, part="ablation_n_hat")


if __name__ == "__main__":
    command_line.run(main)
