#!/bin/bash
# Checks that the demo runs and reports correct answers.
tests/demo/demo | tee "$TEST_TMPDIR/demo.txt"
grep -q "^All answers are right.$" "$TEST_TMPDIR/demo.txt"
