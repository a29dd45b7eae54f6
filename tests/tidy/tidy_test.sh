#!/bin/bash
# clang-tidy finds nothing in the folders that tidy.sh --clean names. Reads the tree itself, through Bazel's link to WORKSPACE.
exec "$(dirname "$(readlink -f WORKSPACE)")/third_party/tidy.sh" --clean
