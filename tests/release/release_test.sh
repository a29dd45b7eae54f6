#!/bin/bash
# Unpacks the release in a Debian 12 that has nothing but its base packages, and
# there: compiles and runs a model of another's export, trains it, and builds
# the C example against the library. Needs root (chroot) and Debian's packages.
set -euo pipefail
archive=$(realpath "$1")
data=$(realpath tests/data/onnx-tiny)
root=$TEST_TMPDIR/debian
fail() { echo "release_test: $*" >&2; exit 1; }
[[ $EUID -eq 0 ]] || fail "expected root, which chroot needs, found user $EUID"

# The mirror is the one that this machine installs from.
mirror=$(awk '$1 == "deb" {for (i = 2; i <= NF; ++i) if ($i ~ /^https?:/ && $(i + 1) == "bookworm") {print $i; exit}}
              $1 == "URIs:" {print $2; exit}' /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null)
[[ -n $mirror ]] || fail "expected a mirror of Debian 12 (bookworm) in /etc/apt/sources.list, found none"
# gcc and libc6-dev are for the C example alone; programs are tried before.
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
in_debian partita-run /root/coatnet.partita --random-inputs 1 --help >/dev/null

echo "--- the C example"
in_debian apt-get update -qq
in_debian apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
in_debian cc "$release/examples/run_from_c/run.c" -I "$release/include" -L "$release/lib" -lpartita_runtime "-Wl,-rpath,$release/lib" -o /root/run
in_debian /root/run /root/gpt2.partita | tee "$TEST_TMPDIR/c.txt"
grep -q "^output " "$TEST_TMPDIR/c.txt" || fail "the C example printed no output"

echo "--- exported symbols"
exported=$(nm -D --defined-only "$root$release/lib/libpartita_runtime.so.1" | awk '{print $3}')
others=$(grep -v '^partita_' <<<"$exported" || true)
[[ -z $others ]] || fail "expected only partita_*, found $others"
echo "$(wc -l <<<"$exported") functions, all partita_*"
echo "release_test: passed"
