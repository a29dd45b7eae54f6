#!/bin/bash
# Tests `run` with a recorded GPU, with a failing test, and without a GPU.
set -u
run=$PWD/$1
folder=$TEST_TMPDIR/gpu
mkdir -p "$folder/conformance/tests/conformance" "$folder/conformance/runtime/cuda/recording" "$folder/lib"
cp -L tests/conformance/device_conformance_test tests/conformance/device_kernels.* "$folder/conformance/tests/conformance/" || exit 1
cp -L runtime/cuda/recording/librecording.so "$folder/conformance/runtime/cuda/recording/" || exit 1
fail() { echo "$1"; cat "$TEST_TMPDIR/out"; exit 1; }

"$run" "$folder" >"$TEST_TMPDIR/out" 2>&1 && fail "expected a failure where there is no GPU"
grep -q 'failed .*no GPU was found: expected libcuda.so.1 and a GPU' "$TEST_TMPDIR/out" || fail "expected advice"

# NVIDIA's libraries may come from Python packages.
packages=$TEST_TMPDIR/packages
mkdir -p "$packages/nvidia/driver/lib"
ln -s "$folder/conformance/runtime/cuda/recording/librecording.so" "$packages/nvidia/driver/lib/libcuda.so.1"
PARTITA_GPU_LIBRARIES= PYTHONPATH=$packages "$run" "$folder" >"$TEST_TMPDIR/out" 2>&1 && fail "expected that other folders are looked at"
PYTHONPATH=$packages "$run" "$folder" "$TEST_TMPDIR/results.json" >"$TEST_TMPDIR/out" 2>&1 || fail "expected success"
grep -Eq 'device_conformance_test +passed .* [1-9][0-9]* tests on the GPU' "$TEST_TMPDIR/out" || fail "expected tests on the GPU"
grep -q '"name": "device_conformance_test", "result": "passed"' "$TEST_TMPDIR/results.json" || fail "expected JSON"

printf '#!/bin/bash\necho "[  FAILED  ] Devices/X.Y/cuda1, where"\nexit 1\n' >"$folder/conformance/tests/conformance/device_bad_test"
chmod +x "$folder/conformance/tests/conformance/device_bad_test"
"$run" "$folder" >"$TEST_TMPDIR/out" 2>&1 && fail "expected a failure"
grep -q 'device_bad_test .*failed .*Devices/X.Y/cuda1' "$TEST_TMPDIR/out" || fail "expected the name of what failed"

printf '#!/bin/bash\necho "tests/x.cc:7: Skipped"\necho "no cuDNN: not installed"\n' >"$folder/conformance/tests/conformance/device_bad_test"
"$run" "$folder" >"$TEST_TMPDIR/out" 2>&1 && fail "expected that skipped tests count"
grep -q 'device_bad_test .*skipped .*no cuDNN: not installed' "$TEST_TMPDIR/out" || fail "expected the reason"

# The folder of the target that suits the GPU is taken.
rm -rf "$folder/conformance"
mkdir -p "$folder/targets/sm_80" "$folder/targets/sm_90a" "$TEST_TMPDIR/smi"
for of in "80 sm_80" "86 sm_80" "90 sm_90a" "100 sm_80"; do
  printf '#!/bin/bash\necho %s\n' "$(echo "${of% *}" | sed 's/.$/.&/')" >"$TEST_TMPDIR/smi/nvidia-smi"
  chmod +x "$TEST_TMPDIR/smi/nvidia-smi"
  found=$(PATH=$TEST_TMPDIR/smi:$PATH bash -x "$run" "$folder" 2>&1 | sed -n 's/^+ made=//p')
  [ "$found" = "$folder/targets/${of#* }" ] || fail "expected ${of#* } for compute capability ${of% *}, found $found"
done
printf '#!/bin/bash\necho 7.0\n' >"$TEST_TMPDIR/smi/nvidia-smi"
PATH=$TEST_TMPDIR/smi:$PATH "$run" "$folder" >"$TEST_TMPDIR/out" 2>&1 && fail "expected a refusal of an old GPU"
grep -q 'expected a folder for this GPU in .*, found sm_80 sm_90a' "$TEST_TMPDIR/out" || fail "expected the targets for an old GPU"
PARTITA_GPU_TARGET=sm_70 "$run" "$folder" >"$TEST_TMPDIR/out" 2>&1 && fail "expected a refusal"
grep -q 'expected a folder for this GPU in .*, found sm_80 sm_90a' "$TEST_TMPDIR/out" || fail "expected the targets"
