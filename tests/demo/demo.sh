#!/bin/bash
# Shows Partita's commands and checks their answers. Runs in the runfiles folder, where `bazel run` and tests start programs.
exec /usr/bin/python3 -S -B tests/demo/demo.py
