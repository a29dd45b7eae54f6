#!/bin/bash
# Writes a plan by hand, lets the planner write another, and compares them: the
# differences of the files, and the simulated time of a training step.
#
#   compare_plans.sh [MODEL [FOLDER]]
#
# MODEL: a model with a batch and a sequence; default: gpt2, by name.
# FOLDER: for plans and artifacts; default: a temporary folder.
#
# Expect a list of differences, then the seconds of a step of both plans on 8
# GPUs, which this machine need not have. The planner's plan is faster, because
# this model is too small for the tensor parallelism of the plan by hand. And
# the planner's price of its plan is the time that the simulator finds.
set -euo pipefail
model=${1:-gpt2}
folder=${2:-$(mktemp -d)}
[[ -n ${2:-} ]] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"
cluster="8x a100-80-sxm"
sizes=(--dim "batch=32,seq=1024")
fail() { echo "compare_plans.sh: $*" >&2; exit 1; }

# Megatron's division with sequence parallelism, and ZeRO 1 over `data`.
cat >"$folder/by_hand.yaml" <<'END'
mesh: {data: 2, tensor: 4}
shard:
  - {B: data}
  - {M: tensor, N: tensor, V: tensor}
  - {L: tensor}
zero: 1
precision: bf16
END
# The last "step_seconds" of a JSON object is that of the plan or program itself.
step_seconds() { sed 's/.*"step_seconds":\([^,}]*\).*/\1/'; }
price=$(partita plan "$model" "${sizes[@]}" --train adamw --precision bf16 --cluster "$cluster" \
  -o "$folder/planner.yaml" --json | step_seconds)

echo "differences, by hand -> planner:"
# Exit code 1: the plans differ. 2: one of them cannot be read.
partita plan diff "$folder/by_hand.yaml" "$folder/planner.yaml" || [[ $? == 1 ]]

# simulate PLAN: prints the seconds of a step
simulate() {
  partita compile "$model" "${sizes[@]}" --train adamw --plan "$folder/$1.yaml" --target cuda:sm_80 \
    -o "$folder/$1.partita" >"$folder/$1.txt" 2>&1 || { cat "$folder/$1.txt" >&2; return 1; }
  partita simulate "$folder/$1.partita" --cluster "$cluster" --json | step_seconds
}
by_hand=$(simulate by_hand)
planner=$(simulate planner)
echo "a step of the plan by hand:        $by_hand s"
echo "a step of the planner's plan:      $planner s"
echo "the same, as the planner said:     $price s"
awk "BEGIN {exit !($planner <= $by_hand)}" ||
  fail "expected the planner's plan to be as fast as the plan by hand, $by_hand s, found $planner s"
awk "BEGIN {d = $price / $planner - 1; exit !(d < 1e-6 && d > -1e-6)}" ||
  fail "expected the planner to price its plan as it is simulated, $planner s, found $price s"
