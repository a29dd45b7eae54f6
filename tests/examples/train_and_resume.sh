#!/bin/bash
# Trains a model, stops, and resumes from the checkpoint: first under the same
# plan, then divided over two devices.
#
#   train_and_resume.sh [MODEL [TEXT [FOLDER]]]
#
# MODEL: a GPT-2 folder; default: tiny_gpt2 beside this script.
# TEXT: the training data, one token per byte; default: this script.
# FOLDER: for artifacts, logs and checkpoints; default: a temporary folder.
#
# Expect the loss of step 20 of three runs: 20 steps without a stop, and 10
# steps resumed twice. The first two losses are equal to the last digit. The
# third is equal up to rounding, because two devices sum in another order.
set -euo pipefail
here=$(dirname "$0")
model=${1:-$here/tiny_gpt2}
text=${2:-$0}
folder=${3:-$(mktemp -d)}
[[ -n ${3:-} ]] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"

compile=(partita compile "$model" --dim "batch=4,seq=32" --train adamw)
"${compile[@]}" -o "$folder/one.partita"
"${compile[@]}" --mesh data=2 --shard B=data --zero 1 -o "$folder/two.partita"

# train ARTIFACT LOG OPTION...: trains with one thread, because the model is small
train() {
  partita train "$folder/$1.partita" --data "text:$text" --log "$folder/$2.jsonl" --threads 1 --quiet "${@:3}" \
    >"$folder/$2.txt"
}
train one straight --steps 20

# Training saves a checkpoint after its last step. --checkpoint-every N also
# saves one every N steps, so that a killed run loses at most N steps.
train one resumed --steps 10 --checkpoint-dir "$folder/checkpoints"
cp -r "$folder/checkpoints" "$folder/checkpoints_two"
cp "$folder/resumed.jsonl" "$folder/divided.jsonl"
train one resumed --steps 20 --checkpoint-dir "$folder/checkpoints" --resume

# A checkpoint holds whole tensors, so every plan can resume it.
train two divided --steps 20 --checkpoint-dir "$folder/checkpoints_two" --resume

loss() { grep "\"step\":$1," "$folder/$2.jsonl" | sed 's/.*"loss":\([^,]*\).*/\1/'; }
first=$(loss 1 straight)
straight=$(loss 20 straight)
resumed=$(loss 20 resumed)
divided=$(loss 20 divided)
echo "loss of step 1:                     $first"
echo "loss of step 20, without a stop:    $straight"
echo "loss of step 20, resumed:           $resumed"
echo "loss of step 20, on two devices:    $divided"

fail() { echo "train_and_resume.sh: $*" >&2; exit 1; }
awk "BEGIN {exit !($straight < $first)}" || fail "expected the loss to fall from $first, found $straight"
[[ $resumed == "$straight" ]] || fail "expected the loss $straight after resuming, found $resumed"
awk "BEGIN {d = $divided - $straight; exit !(d < 1e-3 && d > -1e-3)}" ||
  fail "expected a loss within 0.001 of $straight on two devices, found $divided"
echo "resumed training equals training without a stop"
