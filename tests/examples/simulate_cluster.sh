#!/bin/bash
# Simulates a training step on a cluster: without faults, then with a slow device,
# then with a slow network. Writes a timeline. The cluster itself is not needed.
#
#   simulate_cluster.sh [MODEL [FOLDER]]
#
# MODEL: a model with a batch and a sequence; default: gpt2, by name.
# FOLDER: for artifacts, timeline and report; default: a temporary folder.
#
# Expect the seconds of a step in each case. Faults make it slower. Open
# trace.json with ui.perfetto.dev and report.html with any browser: name a
# FOLDER to keep them.
set -euo pipefail
model=${1:-gpt2}
folder=${2:-$(mktemp -d)}
[[ -n ${2:-} ]] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"
fail() { echo "simulate_cluster.sh: $*" >&2; exit 1; }

# Two nodes of four A100s each, with an Ethernet between them.
cat >"$folder/cluster.yaml" <<'END'
name: planned
devices: 8
device: {like: a100-80-sxm}
levels:
  - {name: nvlink, devices: 4, bandwidth: 300 GB/s, latency: 3.4 us, efficiency: 0.76}
  - {name: network, devices: 8, bandwidth: 100 Gbit/s, latency: 20 us, efficiency: 0.9}
END
partita compile "$model" --dim "batch=16,seq=512" --train adamw --target cuda:sm_80 --precision bf16 \
  --mesh data=2,tensor=4 --shard "B=data;M=tensor,N=tensor,V=tensor;L=tensor" -o "$folder/step.partita"

# The table for people: parts of the step, memory, most expensive operations.
partita simulate "$folder/step.partita" --cluster "$folder/cluster.yaml" --operations 3

# seconds OPTION...: prints the seconds of a step
seconds() {
  partita simulate "$folder/step.partita" --cluster "$folder/cluster.yaml" --json "$@" |
    sed 's/.*"step_seconds":\([^,}]*\).*/\1/'
}
healthy=$(seconds)
slow_device=$(seconds --fault device=3:0.5 --trace "$folder/trace.json" --html "$folder/report.html")
slow_network=$(seconds --fault link=0-1:0.1)
echo
echo "without faults:                            $healthy s"
echo "device 3 computes at half its speed:       $slow_device s"
echo "a tenth of the bandwidth from node 0 to 1: $slow_network s"

for slow in "$slow_device" "$slow_network"; do
  awk "BEGIN {exit !($slow > $healthy)}" || fail "expected a fault to make a step slower than $healthy s, found $slow s"
done
grep -q '"traceEvents"' "$folder/trace.json" || fail "expected a timeline in $folder/trace.json, found none"
[[ -s $folder/report.html ]] || fail "expected a report in $folder/report.html, found none"
