#!/bin/bash
# Runs the Slurm example with stand-ins for sbatch and srun on PATH: the job's
# four tasks meet over TCP and train with the losses of four threads.
# slurm_test.sh SCRIPT STAND_IN_SBATCH STAND_IN_SRUN
set -euo pipefail
script=$1
folder=$(mktemp -d "$TEST_TMPDIR/slurm.XXXXXX")
out=$folder/out
fail() { echo "slurm_test.sh: $*" >&2; cat "$out" >&2; exit 1; }
for name in ${!OMPI_@} ${!SLURM_@} ${!PMI_@}; do unset "$name"; done
mkdir "$folder/bin"
cp "$2" "$folder/bin/sbatch"
cp "$3" "$folder/bin/srun"
export PATH=$folder/bin:$PWD/compiler/tools:$PWD/runtime/tools:$PATH
export STAND_IN_LOG=$folder/started

# A taken port must not fail this test, so it retries.
for attempt in 1 2 3 4 5; do
  rm -rf "$folder/job" "$STAND_IN_LOG"
  code=0
  SBATCH="--partition=cpu" PARTITA_MEET_AT=tcp://127.0.0.1:$((20000 + RANDOM % 10000)) \
    "$script" "$(dirname "$script")/tiny_gpt2" "$script" "$folder/job" >"$out" 2>&1 || code=$?
  [ $code = 0 ] && break
  grep -q "choose another port" "$out" || fail "expected success of $script, found exit code $code"
done
[ $code = 0 ] || fail "expected a free port in five attempts, found none"
for pattern in "^#SBATCH --nodes=2$" "^#SBATCH --ntasks-per-node=2$" "^srun --ntasks=4 .*partita-run train " "^step 10, loss "; do
  grep -q -e "$pattern" "$out" || fail "expected a line with '$pattern', found none"
done

# Tasks 0 and 1 on node 0, tasks 2 and 3 on node 1, each with one step of Slurm.
expected="options --wait --partition=cpu
task 0 of 4 on node 0
task 1 of 4 on node 0
task 2 of 4 on node 1
task 3 of 4 on node 1"
[ "$(cat "$STAND_IN_LOG")" = "$expected" ] || fail "expected these tasks: $expected; found: $(cat "$STAND_IN_LOG")"

# The same artifact on threads of one process.
losses() { grep -o '"step":[0-9]*,"loss":[^,]*' "$1"; }
partita-run train "$folder/job/step.partita" --data "text:$script" --steps 10 --quiet --log "$folder/threads.jsonl" >"$out" 2>&1 ||
  fail "expected threads to train"
[ "$(losses "$folder/job/log.jsonl")" = "$(losses "$folder/threads.jsonl")" ] ||
  fail "expected the losses of threads, $(losses "$folder/threads.jsonl"), found $(losses "$folder/job/log.jsonl")"

# If a task fails, so do the job and the example.
STAND_IN_FAILS=3 "$script" "$(dirname "$script")/tiny_gpt2" "$script" "$folder/failed" >"$out" 2>&1 &&
  fail "expected the example to fail with its job"
exit 0
