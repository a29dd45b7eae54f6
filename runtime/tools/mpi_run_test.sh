#!/bin/bash
# partita-run as processes of mpirun: same results as threads, refusals, and ranks that stop or die.
# mpi_run_test.sh ENVIRONMENT PARTITA_RUN WRITE_DIVIDED_ARTIFACT WRITE_PIPELINE_ARTIFACT
set -u
source "$1"
run=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
model=$dir/model.partita
"$3" "$model" 5 2 2 || exit 1

fail() {
  echo "FAILED: $1" >&2
  [ -z "${2:-}" ] || cat "$2" >&2
  exit 1
}

"$run" "$model" --input x=arange --output-dir "$dir/threads" >"$dir/threads.txt" || fail "threads" "$dir/threads.txt"
"${mpi[@]}" -np 4 "$run" "$model" --input x=arange --output-dir "$dir/processes" --repeat 3 --json >"$dir/out" 2>&1 \
  || fail "processes" "$dir/out"
grep -q '"devices": 4' "$dir/out" || fail "one report of four devices" "$dir/out"
[ "$(grep -c '"model"' "$dir/out")" = 1 ] || fail "one report" "$dir/out"
for name in y all where; do
  cmp "$dir/threads/$name.npy" "$dir/processes/$name.npy" || fail "$name differs"
done

# Pipeline stages: rank 0 reports outputs that it does not hold, and the use of
# all devices.
"$4" "$dir/pipeline.partita" 8 2 || exit 1
stages=("$dir/pipeline.partita" --input x=random:0:1 --input t=random:0:1 --input lr=random:0:0.01 --input step=arange --random-inputs 3)
"$run" "${stages[@]}" --output-dir "$dir/stage-threads" >"$dir/out" 2>&1 || fail "stages as threads" "$dir/out"
"${mpi[@]}" -np 4 "$run" "${stages[@]}" --output-dir "$dir/stage-processes" --json --profile >"$dir/out" 2>&1 \
  || fail "stages as processes" "$dir/out"
[ "$(grep -c '"pipeline_rank": 1' "$dir/out")" = 2 ] || fail "two devices of the second stage" "$dir/out"
grep -q 'send f32\[2,5\] to entry 1' "$dir/out" || fail "the profile of rank 0" "$dir/out"
for name in loss at y; do
  cmp "$dir/stage-threads/$name.npy" "$dir/stage-processes/$name.npy" || fail "$name of stages differs"
done

"${mpi[@]}" -np 3 "$run" "$model" --input x=arange >"$dir/out" 2>&1 && fail "three processes were accepted"
grep -q "compiled for 4 devices (data=2,tensor=2), found 3 processes of mpirun; start 4 (mpirun -np 4), or compile" \
  "$dir/out" || fail "the message about three processes" "$dir/out"
[ "$(grep -c 'partita-run:' "$dir/out")" = 1 ] || fail "the message comes once" "$dir/out"
"${mpi[@]}" -np 1 "$run" "$model" --input x=arange >"$dir/out" 2>&1 && fail "one process was accepted"
grep -q "found 1 process of mpirun" "$dir/out" || fail "the message about one process" "$dir/out"
"${mpi[@]}" -np 4 "$run" "$model" >"$dir/out" 2>&1 && fail "no input was accepted"
[ "$(grep -c "no content for input 'x'" "$dir/out")" = 1 ] || fail "the missing input is told once" "$dir/out"

# A different model of the same shape on one rank.
"$3" "$dir/other.partita" 6 2 2 || exit 1
"${mpi[@]}" -np 2 "$run" "$model" --input x=arange : -np 1 "$run" "$dir/other.partita" --input x=arange \
  : -np 1 "$run" "$model" --input x=arange >"$dir/out" 2>&1 && fail "different models were accepted"
[ "$(grep -c 'partita-run:' "$dir/out")" = 1 ] || fail "the message about models comes once" "$dir/out"
grep -Eq "expected the same compiled model on all ranks, found rank 0 \(.*\) with $model \(checksum [0-9a-f]{8}, [0-9]+ bytes\) and rank 2 \(.*\) with $dir/other.partita \(.*; compile it once" \
  "$dir/out" || fail "the message about models" "$dir/out"
cp "$model" "$dir/copy.partita"
"${mpi[@]}" -np 3 "$run" "$model" --input x=arange : -np 1 "$run" "$dir/copy.partita" --input x=arange \
  >"$dir/out" 2>&1 || fail "a copy on one rank" "$dir/out"

# Launchers that promise processes which MPI does not see, and a missing MPI.
SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 "$run" "$model" --input x=arange >"$dir/out" 2>&1 \
  && fail "srun without PMI was accepted"
grep -q "srun started 4 processes, but MPI sees 1; use srun --mpi=pmix" "$dir/out" || fail "the message about srun" "$dir/out"
cp "$run" "$dir/alone"
"$dir/alone" "$model" --input x=arange >"$dir/out" 2>&1 || fail "threads without the plugin" "$dir/out"
OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0 "$dir/alone" "$model" --input x=arange >"$dir/out" 2>&1 \
  && fail "processes without the plugin were accepted"
grep -q "libpartita_mpi.so: cannot open shared object file.*install Open MPI" "$dir/out" \
  || fail "the message about the plugin" "$dir/out"

# Sends signal $1 to one process of a long run (command: the other arguments)
# and waits until all end.
lose_one() {
  local signal=$1
  shift
  "${mpi[@]}" -np 4 "$run" "$@" --repeat 1000000000 --timeout 2 >"$dir/out" 2>&1 &
  local mpirun_id=$! victim="" tries ready id
  # MPI has started in all processes once they have mapped the model; before
  # that, it may wait without a timeout.
  for tries in $(seq 300); do
    sleep 0.1
    ready=0
    for id in $(pgrep -P "$mpirun_id" -f "$1"); do
      grep -qs "$1" "/proc/$id/maps" && ready=$((ready + 1)) && victim=$id
    done
    [ "$ready" = 4 ] && break
  done
  sleep 1
  [ -n "$victim" ] || fail "no process to stop" "$dir/out"
  kill "$signal" "$victim"
  for tries in $(seq 300); do
    kill -0 "$mpirun_id" 2>/dev/null || break
    sleep 0.1
  done
  kill -0 "$mpirun_id" 2>/dev/null && fail "still running 30 s after $signal" "$dir/out"
  wait "$mpirun_id" && fail "success after $signal" "$dir/out"
  return 0
}
lose_one -STOP "$model" --input x=arange
grep -Eq "partita-run: rank [0-9] \(.*, process [0-9]+\): .*rank [0-9] \(.*, process [0-9]+\).* did not arrive at all_" \
  "$dir/out" || fail "the stopped rank is named" "$dir/out"
lose_one -KILL "$model" --input x=arange
grep -Eq "signal 9|did not arrive" "$dir/out" || fail "the killed rank is named" "$dir/out"
lose_one -STOP "${stages[@]}"
grep -Eq "rank [0-9] \(.*, process [0-9]+\).* did not arrive at (transfer 'entry [01] to entry [01]'|all_)" "$dir/out" \
  || fail "the stopped stage is named" "$dir/out"
echo "all as expected"
