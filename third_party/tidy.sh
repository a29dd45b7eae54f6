#!/bin/bash
# Runs clang-tidy: tidy.sh FILES. Without arguments it checks the files that differ from origin/main; with --clean, the folders that must
# have no findings. Build //compiler/tools/... and //runtime/tools/... first, because generated headers are read from bazel-bin. Exits with
# 1 if it finds anything.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
files=("$@")
if [[ ${1:-} == --clean ]]; then
  mapfile -t files < <(find compiler/{core,plan} runtime/{base,checkpoint,comm,data,device,tools,train} -name '*.cc' ! -name '*_test.cc' | sort)
elif [[ ${#files[@]} -eq 0 ]]; then
  mapfile -t files < <(git diff --name-only --diff-filter=d --merge-base origin/main -- '*.cc')
fi
[[ ${#files[@]} -eq 0 ]] && { echo "no files"; exit 0; }
check() {
  local report
  report=$(clang-tidy-22 --quiet "$1" -- -std=c++17 -fexceptions -I. -Ibazel-bin -Iruntime/api -isystem /usr/lib/llvm-22/include \
    -isystem /usr/lib/x86_64-linux-gnu/openmpi/include -idirafter /usr/local/cuda/include 2>/dev/null) && return
  printf '%s\n' "$1" "$report"
  return 1
}
export -f check
printf '%s\0' "${files[@]}" | xargs -0 -n1 -P"$(nproc)" bash -c 'check "$0"' && echo "${#files[@]} files, nothing found"
