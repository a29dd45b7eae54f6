#!/bin/bash
# Unpacks the release in a Debian 12 with base packages only. There it compiles
# and runs two models, one of them exported by PyTorch, and builds the C example
# against the library. Needs root (chroot) and Debian's packages.
set -euo pipefail
archive=$(realpath "$1")
data=$(realpath tests/data/onnx-tiny)
root=$TEST_TMPDIR/debian
fail() { echo "release_test: $*" >&2; exit 1; }
[[ $EUID -eq 0 ]] || fail "expected root, which chroot needs, found user $EUID"

# Use the mirror from which this machine installs packages.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  awk '$1 == "deb" {for (i = 2; i < NF; ++i) if ($i ~ /^https?:/ && $(i + 1) == "bookworm") {print $i; exit}}
       $1 == "URIs:" {print $2; exit}') || true  # cat notices that awk has ended
[[ -n $mirror ]] || fail "expected a mirror of Debian 12 (bookworm) in /etc/apt/sources.list, found none"
# Only the C example needs gcc and libc6-dev, so they are installed after the programs have run.
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" >"$TEST_TMPDIR/debootstrap.log" 2>&1 ||
  { tail -20 "$TEST_TMPDIR/debootstrap.log"; fail "debootstrap failed"; }
trap 'umount "$root/proc" 2>/dev/null || true' EXIT
mount -t proc proc "$root/proc"

zstd -dcq "$archive" | tar -C "$root/opt" -xf -
release=/opt/$(ls "$root/opt")
cp -rL "$data/gpt2" "$root/opt/gpt2"
in_debian() { chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin:"$release/bin" HOME=/root "$@"; }

echo "--- versions"
in_debian partita --version
in_debian partita-run --version
[[ $(in_debian partita --version) == "partita $(basename "$release" | cut -d- -f2)" ]] || fail "--version is not that of $(basename "$release")"

echo "--- inference and training"
in_debian partita compile /opt/gpt2/model_eval.onnx --dim batch=2,seq=12 -o /root/gpt2.partita
in_debian partita run /root/gpt2.partita --input input_ids=arange --repeat 3
in_debian partita compile coatnet-0 -o /root/coatnet.partita
in_debian partita-run /root/coatnet.partita --random-inputs 1

echo "--- the C example"
in_debian apt-get update -qq
in_debian apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
in_debian cc "$release/examples/run_from_c/run.c" -I "$release/include" -L "$release/lib" -lpartita_runtime "-Wl,-rpath,$release/lib" -o /root/run
# The input tokens, and the first numbers of PyTorch's output.
expected=$(/usr/bin/python3 -S - "$data/gpt2/io.safetensors" "$root/root/tokens.bin" <<'END'
import json, struct, sys
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    content = file.read()
begin, end = header["in.input_ids"]["data_offsets"]
with open(sys.argv[2], "wb") as file:
    file.write(content[begin:end])
begin = header["out.eval.y"]["data_offsets"][0]
print(*struct.unpack("<5f", content[begin:begin + 20]))
END
)
in_debian /root/run /root/gpt2.partita /root/tokens.bin | tee "$TEST_TMPDIR/c.txt"
awk -v expected="$expected" '
  $1 == "output" {
    split(expected, numbers, " ")
    for (i = 1; i <= 5; ++i) {
      distance = $(i + 3) - numbers[i]
      if (distance > 2e-5 || distance < -2e-5) exit 1
    }
    compared = 1
  }
  END {exit !compared}' "$TEST_TMPDIR/c.txt" || fail "expected PyTorch's numbers $expected"

echo "--- exported symbols"
exported=$(nm -D --defined-only "$root$release/lib/libpartita_runtime.so.1" | awk '{print $3}')
others=$(grep -v '^partita_' <<<"$exported" || true)
[[ -z $others ]] || fail "expected only partita_*, found $others"
echo "$(wc -l <<<"$exported") functions, all partita_*"
echo "release_test: passed"
