#!/bin/bash
# Builds and runs an example with the commands of its head comment, in a folder
# like a release's, then runs the program on other models and on wrong inputs.
# compiled_example_test.sh SOURCE LIBRARY HEADER
set -euo pipefail
source=$(realpath "$1")
examples=$(dirname "$(dirname "$1")")
data=$PWD/tests/data/onnx-tiny
folder=$(mktemp -d "$TEST_TMPDIR/example.XXXXXX")
export PATH=$PWD/compiler/tools:$PATH PARTITA=$folder/release
fail() { echo "compiled_example_test.sh: $*" >&2; [ ! -s "$folder/out" ] || cat "$folder/out" >&2; exit 1; }

mkdir -p "$PARTITA/lib" "$PARTITA/include" "$folder/examples/example"
cp "$2" "$PARTITA/lib/libpartita_runtime.so.1"
ln -s libpartita_runtime.so.1 "$PARTITA/lib/libpartita_runtime.so"
cp "$3" "$PARTITA/include/"
cp -rL "$examples/tiny_gpt2" "$folder/examples/"
cp "$source" "$folder/examples/example/"
cd "$folder/examples/example"

# The commands of the comment are indented by three spaces, further text by more
# or less.
sed -n '1,/#include/s,^\( \*\|//\)   \([^ ].*\)$,\2,p' "$source" >commands
[ "$(wc -l <commands)" -ge 4 ] || fail "expected commands in the head comment of $1, found: $(cat commands)"
bash -euo pipefail commands >"$folder/out" 2>&1 || fail "expected the commands of $1 to succeed, found exit code $?"

# refuses MESSAGE ARGUMENT...: the program fails with this message
refuses() {
  local code=0
  "$program" "${@:2}" >"$folder/out" 2>&1 || code=$?
  [ $code = 1 ] || fail "expected exit code 1 with ${*:2}, found $code"
  grep -q -e "$1" "$folder/out" || fail "expected the message '$1'"
}

case "$source" in
  *.c)
    program=./run
    grep -q "^input input_ids \[1,16\]$" "$folder/out" || fail "expected the input's shape"
    # The output that the head comment shows, to four digits of its first number.
    expected=$(sed -n 's/^ \*     \(output y [^ ]* [-0-9]*\.[0-9]\{4\}\).*$/\1/p' "$source")
    [ -n "$expected" ] && grep -qF -e "$expected" "$folder/out" || fail "expected a line that begins '$expected'"
    # The numbers of a file are used: 0 to 15 give the outputs of counting up.
    ./run model.partita >"$folder/counting"
    for ((i = 0; i < 16; ++i)); do printf "\\x$(printf %02x $i)\0\0\0\0\0\0\0"; done >counting.bin
    ./run model.partita counting.bin | cmp - "$folder/counting" || fail "expected equal outputs for equal tokens"
    for ((i = 0; i < 16; ++i)); do printf "\x07\0\0\0\0\0\0\0"; done >sevens.bin
    ./run model.partita sevens.bin | cmp -s - "$folder/counting" && fail "expected other outputs for other tokens"
    head -c 8 counting.bin >short.bin
    refuses "expected 16 int64 numbers in the file, found 1" model.partita short.bin
    refuses "expected a file of int64 numbers, found no 'none.bin'" model.partita none.bin
    ;;
  *)
    program=./train
    [ "$(grep -c '^step ' "$folder/out")" = 10 ] || fail "expected ten steps"
    grep -q "^parameter transformer.wte.weight, sum of squares " "$folder/out" || fail "expected a parameter"
    [ -s checkpoints/step-00000010/model-00001-of-00001.safetensors ] || fail "expected a checkpoint"
    # A model of images, with inputs of floating-point numbers.
    partita compile "$data/vit/model_train.onnx" --dim batch=8 --train adamw -o vit.partita >"$folder/out" 2>&1 || fail "expected a compiled ViT"
    ./train vit.partita >"$folder/out" 2>&1 || fail "expected a ViT to train"
    partita compile ../tiny_gpt2 --dim batch=1,seq=4 -o inference.partita >"$folder/out" 2>&1 || fail "expected a compiled GPT-2"
    refuses "compile the model with --train" inference.partita
    ;;
esac
refuses "none.partita" none.partita
code=0
"$program" >"$folder/out" 2>&1 || code=$?
[ $code = 2 ] && grep -q "^usage: " "$folder/out" || fail "expected exit code 2 and the usage without arguments, found $code"
