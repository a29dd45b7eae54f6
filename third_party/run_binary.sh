#!/bin/bash
# Runs a program as a test: run_binary.sh PROGRAM [ARGUMENTS]
exec "$@"
