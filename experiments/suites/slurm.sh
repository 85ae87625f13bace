#!/bin/bash
# A suite on Slurm, a task for each of its chains, which `experiments.rerun --list` numbers:
#   mkdir -p build/logs && sbatch --array=0-139%4 experiments/suites/slurm.sh --model llama2-7b
#   sbatch --array=140 --exclusive --dependency=afterok:JOB experiments/suites/slurm.sh --model llama2-7b   # the times
# A chain that is preempted or reaches its time limit is queued again, and its commands go on where they were.
#SBATCH --gpus-per-node=8 --time=24:00:00 --requeue --signal=B:USR2@120 --open-mode=append
#SBATCH --output=build/logs/%x-%A_%a.log
trap '' TERM
trap 'scontrol requeue "$SLURM_JOB_ID"' USR2
.venv/bin/python -m experiments.rerun "$@" --chain "$SLURM_ARRAY_TASK_ID" &
wait $!
