#!/bin/bash
# Runs one lit test inside Bazel's test sandbox: run_lit.sh FILE
export PARTITA_TOOLS="$TEST_SRCDIR/$TEST_WORKSPACE"
export PARTITA_LIT_OUT="$TEST_TMPDIR"
exec /usr/bin/python3 -S /usr/lib/llvm-22/bin/lit -v "$TEST_SRCDIR/$TEST_WORKSPACE/$1"
