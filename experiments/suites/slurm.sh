#!/bin/bash
# A suite on Slurm: one task for each chain that `python -m experiments.rerun --list` numbers, here 0 to 26.
#   mkdir -p build/logs
#   sbatch --array=0-26%4 --gpus-per-node=8 --cpus-per-task=64 --mem=0 --time=24:00:00 \
#     experiments/suites/slurm.sh --model llama2-7b
# The last chain measures times, so give it --exclusive. A task is queued again if it is preempted, if its time limit
# is near, or if it needs a checkpoint that another task has not written yet, up to 1,000 times. Near its limit training
# saves a checkpoint, for which a step and the saving must fit into the seconds of --signal; after a preemption it goes on
# from the last one. In a conda environment, submit with DPROPE_PYTHON=python.
#SBATCH --requeue --signal=B:USR2@600 --open-mode=append
#SBATCH --output=build/logs/%x-%A_%a.log
if [ "${SLURM_NNODES:-1}" -ne 1 ]; then
  echo "error: a chain runs on one node; give --nodes=1, and fine-tune over several nodes with torchrun." >&2
  exit 2
fi
# Not SLURM_JOB_ID: of one task it is the number of the whole array.
task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
again() {
  [ "${SLURM_RESTART_COUNT:-0}" -lt 1000 ] && scontrol requeue "$task"
}
stop() {
  kill -USR1 "$chain"
  wait "$chain"
  again
  exit 75
}
trap '' TERM  # a preemption gives time, and Slurm queues the task again
trap stop USR2
# As many threads as a process of each GPU has cores; more would also round otherwise.
threads=$((${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}} / ${SLURM_GPUS_ON_NODE:-1}))
export OMP_NUM_THREADS=$((threads > 1 ? threads : 1))
"${DPROPE_PYTHON:-.venv/bin/python}" -m experiments.rerun "$@" --chain "$SLURM_ARRAY_TASK_ID" &
chain=$!
wait $chain
status=$?
[ $status -eq 75 ] && again
exit $status
