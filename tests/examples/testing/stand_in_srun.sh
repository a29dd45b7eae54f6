#!/bin/bash
# Stands in for Slurm's srun in tests: starts all tasks here, with the variables
# that tell each task its number and its place on its node.
# Appends a line per task to $STAND_IN_LOG. Task $STAND_IN_FAILS ends at once
# with an error.
set -euo pipefail
tasks=$SLURM_NTASKS
while [[ ${1:-} == -* ]]; do
  [[ $1 != --ntasks=* ]] || tasks=${1#*=}
  shift
done
# Each task gets a different processor, as with srun.
processors=()
for range in $(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr , ' '); do
  processors+=($(seq "${range%-*}" "${range#*-}"))
done
pids=()
for ((task = 0; task < tasks; ++task)); do
  node=$((task / SLURM_NTASKS_PER_NODE))
  echo "task $task of $tasks on node $node" >>"$STAND_IN_LOG"
  command=("$@")
  [[ $task != "${STAND_IN_FAILS:-}" ]] || command=(false)
  SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=$tasks SLURM_NODEID=$node SLURM_PROCID=$task \
    SLURM_LOCALID=$((task % SLURM_NTASKS_PER_NODE)) \
    taskset -c "${processors[task % ${#processors[@]}]}" "${command[@]}" &
  pids+=($!)
done
# The first failure ends all tasks, as with srun --kill-on-bad-exit, but at once.
# srun sends SIGTERM first and SIGKILL after some seconds.
status=0
for ((task = 0; task < tasks; ++task)); do
  wait -n || { status=$?; kill -KILL "${pids[@]}" 2>/dev/null || true; }
done
exit $status
