#!/usr/bin/env bash
# Up to 24 minutes of one H100 (or A100, 80 GB): what a CPU cannot show of the paper's scale.
#
#   tools/bench/gpu.sh [PART ...] [--toy] [--output CSV]
#
# Parts (default: all, in this order), each a module of tools/bench/gpu/ with a time limit in minutes:
#   loss 2        the fused loss against ours and the plain one, at LLaMA2-7B's head
#   zero3 7       ZeRO-3 on NCCL: killed and given again, the same losses
#   attention 4   SDPA against FlashAttention-2 in training, at 8k and 16k
#   serve 5       prefill and decode of a 7B-shaped model, at 4k, 8k and 16k
#   memory 3      out of memory: batches are halved, answers stay
#   dtype 3       SmolLM2's perplexity in float32 and bfloat16
#
# Rows, each with the device and the versions, are added to tools/bench/results/gpu.csv. A failed part does not stop the
# others. --toy takes tiny sizes and any machine; its rows go to build/gpu-toy.csv and mean nothing.
#
# No GPU has run this yet: it was written without one, and only --toy has been run, on a CPU.
set -u
called_in=$PWD
cd "$(dirname "$0")/../.." || exit 2
python=${PYTHON:-.venv/bin/python}

declare -A minutes
order=()
while read -r _ part limit _; do
  minutes[$part]=$limit
  order+=("$part")
done < <(sed -n '/^# Parts/,/^#$/p' tools/bench/gpu.sh | grep -E '^#   [a-z0-9]+ [0-9]+ ')

parts=() options=()
while (($#)); do
  case $1 in
    --toy) options+=("$1") ;;
    --output) options+=("$1" "$(cd "$called_in" && realpath -m "${2:?needs a file}")") && shift ;;
    *)
      [[ -n ${minutes[$1]:-} ]] || { echo "error: no part $1; there are ${order[*]}, --toy, --output CSV." >&2; exit 2; }
      parts+=("$1")
      ;;
  esac
  shift
done
((${#parts[@]})) || parts=("${order[@]}")

failed=()
for part in "${parts[@]}"; do
  echo "== $part, at most ${minutes[$part]} minutes"
  began=$SECONDS
  timeout --kill-after=10 "${minutes[$part]}m" "$python" -m "tools.bench.gpu.$part" "${options[@]}" \
    || { echo "$part failed with status $?"; failed+=("$part"); }
  echo "== $part took $((SECONDS - began)) s"
done
((${#failed[@]} == 0)) || { echo "failed: ${failed[*]}"; exit 1; }
