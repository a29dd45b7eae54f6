#!/bin/bash
# Collectives over real MPI messages: mpi_check_test.sh ENVIRONMENT MPI_CHECK PLUGIN.
set -e
source "$1"
for n in 2 3 4; do
  "${mpi[@]}" -np $n "$2" "$PWD/$3" | tee "$TEST_TMPDIR/out"
  grep -q "operations on $n processes" "$TEST_TMPDIR/out"
done
