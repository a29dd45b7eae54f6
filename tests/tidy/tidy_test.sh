#!/bin/bash
# Checks that clang-tidy finds nothing in the folders of tidy.sh --clean. Reads the source tree through Bazel's link to WORKSPACE.
exec "$(dirname "$(readlink -f WORKSPACE)")/third_party/tidy.sh" --clean
