"""Measure a model's whole suite with one command.

    python -m experiments.rerun --model tiny                    a base model's suite: fine-tunes, evaluations, ablations
    python -m experiments.rerun --model tiny --quick            the same with one seed and few samples
    python -m experiments.rerun --model tiny --list             print the commands and run nothing
    python -m experiments.rerun --model smollm2 --for 13m       what of its suite ends in 13 minutes, the best first
    python -m experiments.rerun --model PATH_OR_NAME --factor 2   your own model under every method, without training
    python -m experiments.rerun --model llama2-13b --cluster slurm   each training, and what measures it, as a job

The suites are in experiments/suites/, that of your own model in own_model.py. Records go to OUTPUT/results, checkpoints
to OUTPUT/checkpoints, and the output of each command to OUTPUT/logs. If the command is killed, the same command resumes
it and skips what is done. With --for, nothing begins that the time left does not allow, what still runs at the end is
stopped, and what refuses its input is skipped; the same command goes on later. On several GPUs, training takes all of
them, and so does what a server computes (--serve); each other evaluation takes one. An experiment that cannot run on
your own model, and a task or length of one that does not fit in its context, is skipped and named at the end with the
reason.
"""

from __future__ import annotations

from experiments.kit import command_line
from experiments.suites import measure


def main() -> None:
    measure.main(__doc__, "rerun")


if __name__ == "__main__":
    command_line.run(main)
