"""Measure a model's whole suite with one command.

    python -m experiments.rerun --model tiny              a base model's suite
    python -m experiments.rerun --model tiny --quick      the same with one seed and few samples
    python -m experiments.rerun --model tiny --list       only print the commands, chain by chain
    python -m experiments.rerun --model tiny --chain 7    run one chain, by its number in --list
    python -m experiments.rerun --model PATH_OR_NAME --factor 2    your own model, without training
    timeout 13m python -m experiments.rerun --model smollm2     as much as 13 minutes allow, the
    best first

The suites are in experiments/suites/, that of your own model in own_model.py. Records go to
OUTPUT/results, checkpoints to OUTPUT/checkpoints, and the output of each chain to OUTPUT/logs. If
the command is killed, the same command resumes it and skips what is done. A chain makes one model
and measures it, in a process of its own. On a CPU there is one for each core. On GPUs one chain
runs at a time, on all of them. On a cluster, experiments/suites/slurm.sh runs each chain as a task
of an array. An experiment that cannot run on your own model is skipped; the end names it with the
reason, and the exit status is 1. A task or length that does not fit in the model's context is left
out and named.
"""

from __future__ import annotations

from experiments.kit import command_line
from experiments.suites import measure


def main() -> None:
    measure.main(__doc__)


if __name__ == "__main__":
    command_line.run(main)
