#!/bin/bash
# Checks that all answers of the demo are right, that none is missing, and that it takes less than three minutes.
set -euo pipefail
SECONDS=0
output=$TEST_TMPDIR/demo.txt
tests/demo/demo | tee "$output"
grep -q '^All answers are right\.$' "$output" || { echo "expected 'All answers are right.', found '$(tail -n 1 "$output")'"; exit 1; }
right=$(grep -c '^  right: ' "$output")
((right == 14)) || { echo "expected 14 right answers, found $right"; exit 1; }
((SECONDS < 180)) || { echo "expected less than 180 s, found $SECONDS s"; exit 1; }
