#!/bin/bash
# Prints a folder with ONNX's backend tests (node, simple, pytorch-converted, pytorch-operator, light), at the pinned
# version. Fetches the onnx wheel from PyPI (19 MB) the first time and unpacks its test data only.
# Usage: fetch_onnx_backend.sh [DIR], default $PARTITA_ONNX_BACKEND or ~/.cache/partita-onnx-backend-1.22.
set -euo pipefail
directory=${1:-${PARTITA_ONNX_BACKEND:-$HOME/.cache/partita-onnx-backend-1.22}}
if [[ ! -d $directory/node ]]; then
  mkdir -p "$(dirname "$directory")"
  partial=$(mktemp -d "$directory.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  /usr/bin/python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$partial" onnx==1.22.0 >&2 || {
    echo "fetch_onnx_backend.sh: expected pip to fetch onnx 1.22.0 from PyPI; check the network and Debian's python3-pip" >&2
    exit 1
  }
  /usr/bin/python3 - "$partial"/*.whl "$partial/unpacked" <<'PYTHON'
import sys
import zipfile

wheel = zipfile.ZipFile(sys.argv[1])
prefix = "onnx/backend/test/data/"
for folder in ("node/", "simple/", "pytorch-converted/", "pytorch-operator/", "light/"):
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith(prefix + folder)])
PYTHON
  rm -rf "$directory"
  mv -T "$partial/unpacked/onnx/backend/test/data" "$directory"
fi
echo "$directory"
