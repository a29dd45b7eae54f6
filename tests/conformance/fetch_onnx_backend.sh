#!/bin/bash
# Prints the folder of ONNX's own backend tests (node, simple, pytorch-*, light); fetches it from PyPI's wheel the first time
# (20 MB, pip alone, no virtual environment). Usage: fetch_onnx_backend.sh [DIR], default ~/.cache/partita-onnx-backend.
# Wheels after 1.22 no longer hold the tests.
set -euo pipefail
directory=${1:-${PARTITA_ONNX_BACKEND:-$HOME/.cache/partita-onnx-backend}}
tests=onnx/backend/test/data
if [[ ! -d $directory/data/node ]]; then
  mkdir -p "$directory"
  partial=$(mktemp -d "$directory/partial.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  /usr/bin/python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$partial" onnx==1.22.0 >&2 || {
    echo "fetch_onnx_backend.sh: expected pip to fetch onnx 1.22.0 from PyPI; check the network and Debian's python3-pip" >&2
    exit 1
  }
  /usr/bin/python3 -m zipfile -e "$partial"/*.whl "$partial/unpacked"
  rm -rf "$directory/data"
  mv "$partial/unpacked/$tests" "$directory/data"
fi
echo "$directory/data"
