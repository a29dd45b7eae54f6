#!/bin/bash
# Packs a release: make_release.sh VERSION ARCHIVE FILE...
# Programs and libraries among the files are recognised by their names. Their
# shared libraries, except those of C and C++, are copied beside them and found
# relative to the files that need them.
set -euo pipefail
version=$1
archive=$(realpath -m "$2")
shift 2

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/partita-$version
mkdir -p "$root"/{bin,lib,include,examples,share/licenses}

for file in "$@"; do
  case "$file" in
    */partita | */partita-opt | */partita-run) install -m 755 "$file" "$root/bin/" ;;
    */libpartita_runtime.so) install -m 644 "$file" "$root/lib/libpartita_runtime.so.1" ;;
    # The system's MPI is opened, so this is not one of the libraries to ship.
    */libpartita_mpi.so) install -m 644 "$file" "$root/lib/" ;;
    */partita.h) install -m 644 "$file" "$root/include/" ;;
    */version.h)
      grep -q "kVersion\[\] = \"$version\"" "$file" ||
        { echo "make_release.sh: expected version $version in $file, found: $(grep kVersion "$file")" >&2; exit 1; }
      ;;
    */README.release.md) install -m 644 "$file" "$root/README.md" ;;
    *tests/examples/*) install -D -m "$(stat -Lc %a "$file")" "$file" "$root/examples/${file#*tests/examples/}" ;;
    *) install -m 644 "$file" "$root/" ;;
  esac
done
ln -s libpartita_runtime.so.1 "$root/lib/libpartita_runtime.so"
ln -s ../lib/libpartita_mpi.so "$root/bin/libpartita_mpi.so"

# All shared libraries that are needed, their own included. oneDNN and libgomp are opened at run time.
opened=$(/usr/sbin/ldconfig -p | awk '$1 == "libdnnl.so.2" || $1 == "libgomp.so.1" {print $NF}')
[[ $(wc -w <<<"$opened") == 2 ]] || { echo "make_release.sh: expected libdnnl.so.2 and libgomp.so.1, found '$opened'" >&2; exit 1; }
{ ldd "$root"/bin/partita "$root"/bin/partita-opt "$root"/bin/partita-run "$root"/lib/libpartita_runtime.so.1 $opened
  for library in $opened; do echo "- => $library"; done; } |
  awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s|ld-linux[^/]*)\.so' >"$stage/libraries"
while read -r library; do
  install -m 644 "$library" "$root/lib/"
  package=$(dpkg -S "$library" "$(realpath "$library")" 2>/dev/null | head -1 | cut -d: -f1) || true
  if [[ -n $package && -f /usr/share/doc/$package/copyright ]]; then
    install -m 644 "/usr/share/doc/$package/copyright" "$root/share/licenses/$package"
  else
    echo "make_release.sh: expected a Debian package with a licence for $library, found '${package:-none}'" >&2
    exit 1
  fi
done <"$stage/libraries"

chmod u+w "$root"/bin/partita* "$root"/lib/*
strip --strip-debug "$root"/bin/partita "$root"/bin/partita-opt "$root"/bin/partita-run "$root"/lib/libpartita_*.so*
for program in "$root"/bin/partita "$root"/bin/partita-opt "$root"/bin/partita-run; do
  patchelf --set-rpath '$ORIGIN/../lib' "$program"
done
find "$root/lib" -type f -exec patchelf --set-rpath '$ORIGIN' {} \;

tar -C "$stage" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - "partita-$version" |
  zstd -q -T0 -10 -o "$archive" -f
