#!/bin/bash
# A suite on Slurm: one task for each chain that `python -m experiments.rerun --list` numbers, here 0 to 26.
#   mkdir -p build/logs
#   sbatch --array=0-26%4 --gpus-per-node=8 --time=24:00:00 experiments/suites/slurm.sh --model llama2-7b
# The last chain measures times, so give it --exclusive. A task is queued again if it is preempted, if its time limit
# is near, or if it needs a checkpoint that another task has not written yet. It goes on where it was.
#SBATCH --requeue --signal=B:USR2@120 --open-mode=append
#SBATCH --output=build/logs/%x-%A_%a.log
trap '' TERM
trap 'scontrol requeue "$SLURM_JOB_ID"' USR2
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}  # as many as it was given; more would also round otherwise
.venv/bin/python -m experiments.rerun "$@" --chain "$SLURM_ARRAY_TASK_ID" &
wait $!
status=$?
[ $status -eq 75 ] && scontrol requeue "$SLURM_JOB_ID"
exit $status
