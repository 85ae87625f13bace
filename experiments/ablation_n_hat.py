"""Vary n̂, the number of dimensions that DPRoPE interpolates (the paper's Tables 4 and 5).

    python -m experiments.ablation_n_hat --model tiny
    python -m experiments.ablation_n_hat --model tiny --list     print the commands and run nothing

At s = 2, the model is fine-tuned at each n̂ and measured. The suite of a model in
experiments/suites/ says by which benchmarks, and smollm2's leaves out the training; the options are
those of experiments.rerun, which measures this ablation too.
"""

from experiments import rerun
from experiments.kit import command_line


def main() -> None:
    rerun.main(__doc__, part="ablation_n_hat")


if __name__ == "__main__":
    command_line.run(main)
