#!/bin/bash
# The demo runs, and says that its answers are right.
tests/demo/demo | tee "$TEST_TMPDIR/demo.txt"
grep -q "^All answers are right.$" "$TEST_TMPDIR/demo.txt"
