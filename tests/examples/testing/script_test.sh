#!/bin/bash
# Runs an example as a user does, with partita on PATH and without arguments,
# and checks what it prints. Then runs it with a model that does not exist.
# script_test.sh SCRIPT MPI_ENVIRONMENT PATTERN...
set -euo pipefail
script=$1
source "$2"
export MPIRUN="${mpi[*]}" PATH=$PWD/compiler/tools:$PWD/runtime/tools:$PATH
out=$TEST_TMPDIR/out
fail() { echo "script_test.sh: $*" >&2; cat "$out" >&2; exit 1; }

# The script makes its temporary folders here, so that the test finds those left
# behind. Open MPI needs a short path for its sockets.
TMPDIR=$(mktemp -d /tmp/example.XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
"$script" >"$out" 2>&1 || fail "expected success of $script, found exit code $?"
for pattern in "${@:3}"; do
  grep -Eq -e "$pattern" "$out" || fail "expected a line with '$pattern', found none"
done
[ -z "$(find "$TMPDIR" -maxdepth 1 -name 'tmp.*')" ] || fail "expected no temporary folder to be left, found $(ls "$TMPDIR")"

"$script" "$TMPDIR/none" >"$out" 2>&1 && fail "expected $script to refuse a model that does not exist"
grep -q "$TMPDIR/none" "$out" || fail "expected a message about the model $TMPDIR/none"
