#!/bin/bash
# Runs a Python test: run_python.sh FILE
exec /usr/bin/python3 -S "$@"
