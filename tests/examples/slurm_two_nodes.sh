#!/bin/bash
# Trains on two nodes of a Slurm cluster: compiles for them, prints the job with
# `partita slurm`, and submits it.
#
#   slurm_two_nodes.sh [MODEL [TEXT [FOLDER]]]
#
# MODEL: a GPT-2 folder; default: tiny_gpt2 beside this script.
# TEXT: the training data, one token per byte; default: this script.
# FOLDER: for the artifact, the job and its log; default: slurm_two_nodes in the
# current folder.
#
# All paths must be visible to all nodes, so on a cluster name a shared FOLDER;
# give more sbatch options in $SBATCH, such as --partition=cpu. Without
# sbatch on this machine, the script stops after it has printed the job and the
# command that submits it.
#
# The job is one srun line: a task for each device, node by node. Tasks meet
# over MPI if srun has it (srun --mpi=pmix), and else at $PARTITA_MEET_AT, which
# sbatch and srun pass on: tcp://HOST:PORT on the node of task 0, or, as here by
# default, a file in the shared FOLDER.
#
# Expect the job, and after the job has run, a falling loss.
set -euo pipefail
here=$(dirname "$0")
model=${1:-$here/tiny_gpt2}
text=${2:-$(realpath "$0")}
folder=${3:-slurm_two_nodes}
mkdir -p "$folder"
folder=$(realpath "$folder")
fail() { echo "slurm_two_nodes.sh: $*" >&2; exit 1; }

# Two nodes with two devices each. Here a device is a half of a node's cores;
# for GPUs write `like: a100-80-sxm` and compile with --target cuda:sm_80.
cat >"$folder/cluster.yaml" <<'END'
name: two nodes
devices: 4
device: {like: cpu}
levels:
  - {name: node, devices: 2, bandwidth: 10 GB/s, latency: 1 us}
  - {name: network, devices: 4, bandwidth: 10 Gbit/s, latency: 30 us}
END
# The batch is divided over the nodes, each layer within a node.
cat >"$folder/plan.yaml" <<'END'
mesh: {data: 2, tensor: 2}
shard:
  - {B: data}
  - {M: tensor, N: tensor, V: tensor}
zero: 1
END
partita compile "$model" --dim "batch=4,seq=32" --train adamw --plan "$folder/plan.yaml" -o "$folder/step.partita"
partita slurm "$folder/step.partita" --plan "$folder/plan.yaml" --cluster "$folder/cluster.yaml" --time 10 >"$folder/job.sh"
echo
cat "$folder/job.sh"
echo
grep -q -- "^#SBATCH --nodes=2$" "$folder/job.sh" || fail "expected a job of two nodes, found the job above"
grep -q -- "^#SBATCH --ntasks-per-node=2$" "$folder/job.sh" || fail "expected two tasks per node, found the job above"

# Arguments after the job's name go to partita-run train.
submit=("$folder/job.sh" --data "text:$text" --steps 10 --log "$folder/log.jsonl" --checkpoint-dir "$folder/checkpoints" --resume)
export PARTITA_MEET_AT=${PARTITA_MEET_AT:-file://$folder/meet}
if ! command -v sbatch >/dev/null; then
  echo "no sbatch here; on the cluster: PARTITA_MEET_AT=$PARTITA_MEET_AT sbatch ${submit[*]}"
  exit 0
fi
read -ra options <<<"${SBATCH:-}"
sbatch --wait "${options[@]}" "${submit[@]}"

losses() { sed 's/.*"step":\([0-9]*\),"loss":\([^,]*\).*/step \1, loss \2/' "$folder/log.jsonl"; }
losses
[[ $(losses | wc -l) == 10 ]] || fail "expected 10 steps, found $(losses | wc -l)"
losses | awk 'NR == 1 {first = $4} END {exit !($4 < first)}' || fail "expected a falling loss, found a rising one"
