#!/bin/bash
# partita-run train as processes of mpirun: the losses of threads, checkpoints under another plan, and an end in order.
# mpi_train_test.sh ENVIRONMENT PARTITA_RUN WRITE_TRAINING_ARTIFACT WRITE_PIPELINE_ARTIFACT
set -u
source "$1"
run=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$3" "$dir/one.partita" 6 1 1 && "$3" "$dir/four.partita" 6 2 2 || exit 1

fail() {
  echo "FAILED: $1" >&2
  [ -z "${2:-}" ] || cat "$2" >&2
  exit 1
}
losses() { grep -o '"step":[0-9]*,"loss":[^,]*' "$1"; }

common=(--input x=random:0:1 --input t=random:0:1 --lr 0.01 --quiet)
slow=(--input x=random:0:1 --input t=random:0:1 --lr 0.0001 --quiet)
"$run" train "$dir/four.partita" "${common[@]}" --steps 6 --log "$dir/threads.jsonl" --checkpoint-dir "$dir/threads" \
  >"$dir/out" 2>&1 || fail "threads" "$dir/out"
"${mpi[@]}" -np 4 "$run" train "$dir/four.partita" "${common[@]}" --steps 6 --log "$dir/processes.jsonl" \
  --checkpoint-dir "$dir/processes" --json >"$dir/out" 2>&1 || fail "processes" "$dir/out"
[ "$(grep -c '"losses"' "$dir/out")" = 1 ] || fail "one report" "$dir/out"
[ "$(losses "$dir/processes.jsonl" | wc -l)" = 6 ] || fail "six steps" "$dir/processes.jsonl"
[ "$(losses "$dir/threads.jsonl")" = "$(losses "$dir/processes.jsonl")" ] || fail "losses differ" "$dir/processes.jsonl"
for file in model-00001-of-00001 optimizer-00001-of-00001; do
  cmp "$dir/threads/step-00000006/$file.safetensors" "$dir/processes/step-00000006/$file.safetensors" \
    || fail "checkpoints differ"
done

# Pipeline stages: the last stage has the loss, and each stage saves its part.
"$4" "$dir/pipeline.partita" 8 2 || exit 1
train=("$dir/pipeline.partita" "${slow[@]}" --steps 4)
"$run" train "${train[@]}" --log "$dir/stages-threads.jsonl" --checkpoint-dir "$dir/stages-threads" >"$dir/out" 2>&1 \
  || fail "stages as threads" "$dir/out"
"${mpi[@]}" -np 4 "$run" train "${train[@]}" --log "$dir/stages.jsonl" --checkpoint-dir "$dir/stages" >"$dir/out" 2>&1 \
  || fail "stages as processes" "$dir/out"
[ "$(losses "$dir/stages.jsonl" | sort -u | wc -l)" = 4 ] || fail "four steps of stages" "$dir/stages.jsonl"
[ "$(losses "$dir/stages-threads.jsonl")" = "$(losses "$dir/stages.jsonl")" ] \
  || fail "losses of stages differ" "$dir/stages.jsonl"
cmp "$dir/stages-threads/step-00000004/model-00001-of-00001.safetensors" \
  "$dir/stages/step-00000004/model-00001-of-00001.safetensors" || fail "checkpoints of stages differ"
"${mpi[@]}" -np 4 "$run" train "$dir/pipeline.partita" "${slow[@]}" --steps 6 --log "$dir/stages.jsonl" \
  --checkpoint-dir "$dir/stages" --resume >"$dir/out" 2>&1 || fail "stages go on" "$dir/out"
"$run" train "$dir/pipeline.partita" "${slow[@]}" --steps 6 --log "$dir/straight.jsonl" >"$dir/out" 2>&1 \
  || fail "stages without a pause" "$dir/out"
[ "$(losses "$dir/straight.jsonl")" = "$(losses "$dir/stages.jsonl")" ] || fail "losses after the pause differ" "$dir/stages.jsonl"

# Each process reads only the file rows that its device needs.
bytes() { # FILE ROWS COLUMNS
  printf "\\x00\\x00\\x08\\x02\\x00\\x00\\x00\\x$(printf %02x "$2")\\x00\\x00\\x00\\x$(printf %02x "$3")" >"$1"
  seq 100 400 | tr -d '\n' | head -c $(($2 * $3)) >>"$1"
}
bytes "$dir/x.idx" 23 6 && bytes "$dir/t.idx" 23 7 || fail "files"
files=(--data "x=$dir/x.idx,t=$dir/t.idx" --steps 8 --lr 0.01 --quiet)
"$run" train "$dir/four.partita" "${files[@]}" --log "$dir/rows-threads.jsonl" >"$dir/out" 2>&1 \
  || fail "files, threads" "$dir/out"
"${mpi[@]}" -np 4 "$run" train "$dir/four.partita" "${files[@]}" --log "$dir/rows-processes.jsonl" \
  >"$dir/out" 2>&1 || fail "files, processes" "$dir/out"
[ "$(losses "$dir/rows-processes.jsonl" | sort -u | wc -l)" = 8 ] || fail "eight steps" "$dir/rows-processes.jsonl"
[ "$(losses "$dir/rows-threads.jsonl")" = "$(losses "$dir/rows-processes.jsonl")" ] \
  || fail "losses of files differ" "$dir/rows-processes.jsonl"

stage_files=("$dir/pipeline.partita" --data "x=$dir/x.idx,t=$dir/t.idx" --steps 4 --lr 1e-9 --quiet)
"$run" train "${stage_files[@]}" --log "$dir/stage-rows-threads.jsonl" >"$dir/out" 2>&1 || fail "files, stages" "$dir/out"
"${mpi[@]}" -np 4 "$run" train "${stage_files[@]}" --log "$dir/stage-rows.jsonl" >"$dir/out" 2>&1 \
  || fail "files, stages as processes" "$dir/out"
[ "$(losses "$dir/stage-rows-threads.jsonl")" = "$(losses "$dir/stage-rows.jsonl")" ] \
  || fail "losses of files of stages differ" "$dir/stage-rows.jsonl"

# One device resumes a run of four processes, and the other way round.
"$run" train "$dir/one.partita" "${common[@]}" --steps 8 --log "$dir/processes.jsonl" --checkpoint-dir "$dir/processes" \
  --resume >"$dir/out" 2>&1 || fail "one device goes on" "$dir/out"
"${mpi[@]}" -np 4 "$run" train "$dir/four.partita" "${common[@]}" --steps 10 --log "$dir/processes.jsonl" \
  --checkpoint-dir "$dir/processes" --resume >"$dir/out" 2>&1 || fail "four processes go on" "$dir/out"
grep -q "going on from $dir/processes/step-00000008" "$dir/out" || fail "where it goes on" "$dir/out"
[ "$(losses "$dir/processes.jsonl" | wc -l)" = 10 ] || fail "ten steps" "$dir/processes.jsonl"

"${mpi[@]}" -np 4 "$run" train "$dir/four.partita" "${common[@]}" --steps 10 --checkpoint-dir "$dir/threads" \
  >"$dir/out" 2>&1 && fail "another run's checkpoints were accepted"
[ "$(grep -c 'partita-run:' "$dir/out")" = 1 ] || fail "the message about them comes once" "$dir/out"

# mpirun forwards SIGUSR1.
"${mpi[@]}" -np 4 "$run" train "$dir/four.partita" "${common[@]}" --steps 1000000000 --log "$dir/stop.jsonl" \
  --checkpoint-dir "$dir/stop" >"$dir/out" 2>&1 &
mpirun_id=$!
for tries in $(seq 200); do
  [ -s "$dir/stop.jsonl" ] && break
  sleep 0.1
done
kill -USR1 "$mpirun_id"
for tries in $(seq 200); do
  kill -0 "$mpirun_id" 2>/dev/null || break
  sleep 0.1
done
kill -0 "$mpirun_id" 2>/dev/null && { kill "$mpirun_id"; fail "still running 20 s after SIGUSR1" "$dir/out"; }
wait "$mpirun_id" || fail "an error after SIGUSR1" "$dir/out"
last=$(wc -l <"$dir/stop.jsonl")
grep -q "ended   after step $last of 1000000000 by SIGUSR1; saved in" "$dir/out" || fail "the end by a signal" "$dir/out"
[ -e "$dir/stop/step-$(printf %08d "$last")/state.json" ] || fail "no checkpoint of step $last" "$dir/out"
echo "all as expected"
