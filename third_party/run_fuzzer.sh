#!/bin/bash
# Runs a libFuzzer program from seed files for some seconds: run_fuzzer.sh PROGRAM SECONDS [SEEDS]
set -eu
program=$1 seconds=$2
shift 2
corpus=$(mktemp -d "$TEST_TMPDIR/corpus.XXXX")
for seed in "$@"; do cp -L "$seed" "$corpus/$(tr / _ <<<"$seed")"; done
exec "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 "$corpus"
