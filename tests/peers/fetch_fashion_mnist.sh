#!/bin/bash
# Prints a folder with the four unpacked files of Fashion-MNIST (train-images-idx3-ubyte ...). Takes them from Debian's
# package dataset-fashion-mnist (31 MB), which need not be installed. Usage: fetch_fashion_mnist.sh [DIR], default
# ~/.cache/partita-fashion-mnist.
set -euo pipefail
directory=${1:-${PARTITA_FASHION_MNIST:-$HOME/.cache/partita-fashion-mnist}}
if [[ ! -f $directory/train-images-idx3-ubyte ]]; then
  mkdir -p "$directory"
  partial=$(mktemp -d "$directory/partial.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  packed=/usr/share/datasets/fashion-mnist
  if [[ ! -d $packed ]]; then
    (cd "$partial" && apt-get download -qq -o APT::Sandbox::User=root dataset-fashion-mnist >&2 && dpkg-deb -x ./*.deb unpacked) || {
      echo "fetch_fashion_mnist.sh: expected apt-get to fetch dataset-fashion-mnist; install it, or check the network and run apt-get update" >&2
      exit 1
    }
    packed=$partial/unpacked$packed
  fi
  # The largest file is last: if it exists, all files exist.
  for name in t10k-labels-idx1 t10k-images-idx3 train-labels-idx1 train-images-idx3; do
    gzip -dc "$packed/$name-ubyte.gz" >"$partial/$name-ubyte"
    mv "$partial/$name-ubyte" "$directory/"
  done
fi
echo "$directory"
