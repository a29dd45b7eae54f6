#!/bin/bash
# Makes the Python environment of the systems that Partita is compared with. Usage: setup.sh [--torch] [--jax] [--flax] [DIR]
# DIR defaults to $PARTITA_PEERS or ~/.cache/partita-peers. Prints the path of its python; done in 0.1 s when complete.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
wanted=(requirements.txt)
while [[ ${1:-} == --torch || ${1:-} == --jax || ${1:-} == --flax ]]; do
  wanted+=("requirements_${1#--}.txt")
  shift
done
directory=${1:-${PARTITA_PEERS:-$HOME/.cache/partita-peers}}
python=$directory/bin/python

if [[ ! -x $python ]]; then
  mkdir -p "$(dirname "$directory")"
  python3 -m venv "$directory" || {
    echo "setup.sh: expected python3 with venv and ensurepip; install Debian's python3-venv" >&2
    exit 1
  }
fi
for list in "${wanted[@]}"; do
  # The copy of the list is written last, so that an interrupted installation is resumed.
  if ! cmp -s "$here/$list" "$directory/$list"; then
    nice "$directory/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/$list" >&2
    if [[ $list == requirements_torch.txt ]]; then
      "$python" "$here/cuda_stubs.py" "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch" >&2
      "$python" -c 'import torch' >&2
    fi
    cp "$here/$list" "$directory/$list"
  fi
done
echo "$python"
