#!/bin/bash
# partita-run as processes that meet at an address, without MPI: same results as threads, and ranks that are missing or die.
# tcp_run_test.sh PARTITA_RUN WRITE_DIVIDED_ARTIFACT
set -u
run=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
model=$dir/model.partita
"$2" "$model" 5 2 2 || exit 1
for name in ${!OMPI_@} ${!SLURM_@} ${!PMI_@}; do unset "$name"; done
export WORLD_SIZE=4

fail() {
  echo "FAILED: $1" >&2
  [ -z "${2:-}" ] || cat "$2" >&2
  exit 1
}

# start RANK ARGUMENT...: runs in the background, with output in $dir/RANK
start() {
  local rank=$1
  shift
  RANK=$rank LOCAL_RANK=$rank timeout 100 "$run" "$model" --input x=arange "$@" >"$dir/$rank" 2>&1 &
  pids[$rank]=$!
}

"$run" "$model" --input x=arange --output-dir "$dir/threads" >"$dir/out" 2>&1 || fail "threads" "$dir/out"

# With torchrun's variables. A taken port must not fail this test, so it
# retries.
for attempt in 1 2 3 4 5; do
  export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 10000))
  for rank in 3 1 0 2; do start $rank --output-dir "$dir/tcp" --json; done
  codes=
  for rank in 0 1 2 3; do wait "${pids[$rank]}"; codes+=$?; done
  [ "$codes" = 0000 ] && break
  grep -q "choose another port" "$dir/0" || fail "torchrun's variables: exit codes $codes" "$dir/0"
done
[ "$codes" = 0000 ] || fail "no port was free" "$dir/0"
grep -q '"devices": 4' "$dir/0" || fail "a report of four devices" "$dir/0"
cat "$dir/1" "$dir/2" "$dir/3" >"$dir/rest"
[ -s "$dir/rest" ] && fail "one report" "$dir/rest"
for name in y all where; do
  cmp "$dir/threads/$name.npy" "$dir/tcp/$name.npy" || fail "$name differs"
done
unset MASTER_ADDR MASTER_PORT

# Rendezvous through a file, which is removed afterwards.
export PARTITA_MEET_AT=file://$dir/meet
for rank in 0 1 2 3; do start $rank --output-dir "$dir/file" --repeat 3; done
for rank in 0 1 2 3; do wait "${pids[$rank]}" || fail "by a file" "$dir/$rank"; done
cmp "$dir/threads/y.npy" "$dir/file/y.npy" || fail "y differs"
[ ! -e "$dir/meet" ] || fail "the file is still there"

# If a rank does not come, all others name it within the timeout.
begin=$SECONDS
for rank in 0 1 3; do start $rank --timeout 2; done
for rank in 0 1 3; do
  wait "${pids[$rank]}" && fail "rank $rank succeeded without rank 2"
  grep -q "rank 2 of 4 did not come to file://$dir/meet within 2 s" "$dir/$rank" || fail "rank 2 is named by rank $rank" "$dir/$rank"
done
[ $((SECONDS - begin)) -lt 30 ] || fail "that took $((SECONDS - begin)) s"

# Likewise for a rank that is killed.
for rank in 0 1 2 3; do start $rank --repeat 1000000 --timeout 20; done
sleep 3
kill -9 "$(pgrep -P "${pids[2]}" | head -1)" || fail "nobody to kill"
for rank in 0 1 3; do
  wait "${pids[$rank]}" && fail "rank $rank succeeded without rank 2"
  grep -Eq "rank 2 \(.*, process [0-9]+\)" "$dir/$rank" || fail "rank 2 is named by rank $rank" "$dir/$rank"
done
grep -hq "has ended: its connection was closed" "$dir/0" "$dir/1" "$dir/3" || fail "how rank 2 ended" "$dir/0"

# The number of processes differs from the model's number of devices.
export WORLD_SIZE=2
for rank in 0 1; do start $rank; done
for rank in 0 1; do wait "${pids[$rank]}" && fail "two processes were accepted"; done
grep -q "compiled for 4 devices (data=2,tensor=2), found 2 processes of torchrun; start 4 (WORLD_SIZE=4)" "$dir/0" "$dir/1" ||
  fail "the message about two processes" "$dir/0"
exit 0
