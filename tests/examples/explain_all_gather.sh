#!/bin/bash
# Finds the cause of a surprising all-gather, removes it, and forbids it.
#
#   explain_all_gather.sh [MODEL [FOLDER]]
#
# MODEL: a GPT-2 folder; default: tiny_gpt2 beside this script.
# FOLDER: for plans and artifacts; default: a temporary folder.
#
# Megatron's tensor parallelism needs no all-gather. The first plan has an
# override that divides dimension 1 of the MLP's second weight. That would be
# right for torch.nn.Linear, whose weights are [out, in]: dimension 1 is M, the
# MLP's width. But GPT-2 stores [in, out], so dimension 1 is E, and the MLP's
# activations, which are divided along M, must be gathered in every layer.
#
# Expect the explanation of these all-gathers, which names the override. Then
# expect the number of all-gathers of both plans: 33 and 0 for the default
# model. Finally a budget refuses the first plan.
set -euo pipefail
here=$(dirname "$0")
model=${1:-$here/tiny_gpt2}
folder=${2:-$(mktemp -d)}
[[ -n ${2:-} ]] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"
options=("$model" --dim "batch=4,seq=32" --train adamw)
fail() { echo "explain_all_gather.sh: $*" >&2; exit 1; }

cat >"$folder/before.yaml" <<'END'
mesh: {tensor: 2}
shard:
  - {M: tensor, N: tensor, V: tensor}
overrides:
  - {tensor: "*.mlp.c_proj.weight", sharding: "[{}, {tensor}]"}
END
# Without the override, the entry of M divides dimension 0. `partita inspect`
# shows the names of dimensions, each with an example.
cat >"$folder/after.yaml" <<'END'
mesh: {tensor: 2}
shard:
  - {M: tensor, N: tensor, V: tensor}
END

echo "why there are all-gathers (at, why; gone: the part of the plan that causes them):"
partita explain "${options[@]}" --plan "$folder/before.yaml" 2>"$folder/notes.txt" >"$folder/before.txt" ||
  { cat "$folder/notes.txt" >&2; exit 1; }
awk -v RS= '/^all_gather/ && /at    [^ \n]*mlp/ && !shown++' "$folder/before.txt"

# explain PLAN: sets `gathers`, the all-gathers of a step, and `bytes`, which a
# device sends in a step
explain() {
  partita explain "${options[@]}" --plan "$folder/$1.yaml" --json 2>"$folder/notes.txt" >"$folder/$1.json" ||
    { cat "$folder/notes.txt" >&2; exit 1; }
  gathers=$(tr '{' '\n' <"$folder/$1.json" |
    sed -n 's/.*"kind":"all_gather","times":\([0-9]*\).*/\1/p' | awk '{sum += $1} END {print sum + 0}')
  bytes=$(sed 's/^{"bytes":\([0-9]*\).*/\1/' "$folder/$1.json")
  echo "$1: $gathers all-gathers, each device sends $bytes bytes per step"
}
explain before
gathers_before=$gathers bytes_before=$bytes
explain after
[[ $gathers_before -gt 0 ]] || fail "expected all-gathers before, found none"
[[ $gathers == 0 ]] || fail "expected no all-gather after, found $gathers"
[[ $bytes -lt $bytes_before ]] || fail "expected fewer bytes than $bytes_before, found $bytes"

# A budget makes the compiler refuse a plan that gathers again.
for plan in before after; do echo "budgets: {all_gather: 0 MB}" >>"$folder/$plan.yaml"; done
partita compile "${options[@]}" --plan "$folder/after.yaml" -o "$folder/after.partita" >"$folder/after.txt" 2>&1 ||
  { cat "$folder/after.txt" >&2; fail "expected the budget to admit the plan after, found the error above"; }
if partita compile "${options[@]}" --plan "$folder/before.yaml" -o "$folder/before.partita" >"$folder/error.txt" 2>&1; then
  fail "expected the budget to refuse the plan before, found that it compiles"
fi
echo "with a budget, the plan before is refused:"
grep -m 1 "all_gather" "$folder/error.txt" || { cat "$folder/error.txt" >&2; fail "expected an error about all_gather"; }
