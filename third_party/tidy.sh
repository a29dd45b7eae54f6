#!/bin/bash
# clang-tidy on sources: tidy.sh [FILES], or those that differ from origin/main. Build them first: MLIR's generated headers
# are read from bazel-bin.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  mapfile -t files < <(git diff --name-only --diff-filter=d --merge-base origin/main -- '*.cc')
fi
failed=0
for file in "${files[@]}"; do
  echo "$file"
  clang-tidy-22 --quiet "$file" -- -std=c++17 -fexceptions -I. -Ibazel-bin -isystem /usr/lib/llvm-22/include 2>/dev/null || failed=1
done
exit $failed
