#!/bin/bash
# Fails unless a checked-in file equals a generated one: same_file.sh CHECKED_IN GENERATED
if ! diff -u "$1" "$2"; then
  echo "expected $1 to be what the .td file says; bring it up to date with: cp bazel-bin/${2#*bin/} $1"
  exit 1
fi
