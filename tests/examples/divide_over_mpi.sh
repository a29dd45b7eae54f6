#!/bin/bash
# Trains one model on four devices, first as threads of one process, then as
# four processes of Open MPI. The artifact is the same.
#
#   divide_over_mpi.sh [MODEL [TEXT [FOLDER]]]
#
# MODEL: a GPT-2 folder; default: tiny_gpt2 beside this script.
# TEXT: the training data, one token per byte; default: this script.
# FOLDER: for artifacts and logs; default: a temporary folder.
# $MPIRUN: the launcher; default: mpirun --oversubscribe, which permits more
# processes than cores. On a cluster: mpirun --hostfile FILE.
#
# If the user is root, Open MPI also requires OMPI_ALLOW_RUN_AS_ROOT=1 and
# OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the environment.
#
# Expect ten losses that fall and are equal in both runs to the last digit.
set -euo pipefail
here=$(dirname "$0")
model=${1:-$here/tiny_gpt2}
text=${2:-$0}
folder=${3:-$(mktemp -d)}
[[ -n ${3:-} ]] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"
read -ra mpirun <<<"${MPIRUN:-mpirun --oversubscribe}"
fail() { echo "divide_over_mpi.sh: $*" >&2; exit 1; }

# `data` divides the batch. `tensor` divides MLPs, heads and the vocabulary, and
# the sequence in between.
partita compile "$model" --dim "batch=4,seq=32" --train adamw \
  --mesh data=2,tensor=2 --shard "B=data;M=tensor,N=tensor,V=tensor;L=tensor" -o "$folder/step.partita"

# Processes start partita-run, which is all that a node of a cluster needs.
train=(train "$folder/step.partita" --data "text:$text" --steps 10 --quiet)
partita-run "${train[@]}" --log "$folder/threads.jsonl" >"$folder/threads.txt"
"${mpirun[@]}" -np 4 partita-run "${train[@]}" --log "$folder/processes.jsonl" >"$folder/processes.txt"

losses() { sed 's/.*"step":\([0-9]*\),"loss":\([^,]*\).*/\1 \2/' "$folder/$1.jsonl"; }
echo "step loss (threads)       loss (processes)"
paste -d' ' <(losses threads) <(losses processes) | awk '{printf "%-4d %-20s %-20s\n", $1, $2, $4}'

[[ $(losses processes | wc -l) == 10 ]] || fail "expected 10 steps, found $(losses processes | wc -l)"
[[ $(losses threads) == "$(losses processes)" ]] || fail "expected equal losses of threads and processes, found others"
losses processes | awk 'NR == 1 {first = $2} END {exit !($2 < first)}' || fail "expected a falling loss, found a rising one"
echo "four processes train as four threads do"
