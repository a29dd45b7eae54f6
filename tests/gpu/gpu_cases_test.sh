#!/bin/bash
# Tests `make_cases` and `run` on a model compiled for the CPU. Matching results
# pass. Wrong, hanging and late cases fail by name while the rest continues.
set -u
here=tests/gpu
folder=$TEST_TMPDIR/gpu
out=$TEST_TMPDIR/out
mkdir -p "$folder/bin" "$folder/lib"
export PARTITA=compiler/tools/partita PARTITA_RUN=runtime/tools/partita-run
fail() { echo "$1"; cat "$out"; exit 1; }

$here/make_cases "$folder" cpu gpt2 >"$out" 2>&1 || fail "expected cases"
grep -q '11 cases of 1 models for cpu' "$out" || fail "expected 11 cases"
$here/make_cases "$TEST_TMPDIR/none" cpu gpt3 >"$out" 2>&1 && fail "expected a refusal"
grep -q 'expected a folder of tests/data/onnx-tiny, found gpt3' "$out" || fail "expected advice"
cp -L $PARTITA_RUN $here/compare_results $here/device_bench "$folder/bin/"

# Without a GPU, device_bench fails and nothing else.
$here/run "$folder" "$TEST_TMPDIR/results.json" >"$out" 2>&1 && fail "expected a failure of device_bench"
[ "$(grep -c '^gpt2.* passed  ' "$out")" -eq 11 ] || fail "expected 11 rows that passed"
grep -Eq '^bench device +failed .*libcuda' "$out" || fail "expected that device_bench finds no driver"
grep -q '"name": "gpt2.whole.step train", "result": "passed"' "$TEST_TMPDIR/results.json" || fail "expected JSON"

# With a recorded GPU, device_bench computes and calls the recorded cuBLASLt
# directly.
cp -L runtime/cuda/recording/librecording.so "$TEST_TMPDIR/gpu.so"
"$folder/bin/device_bench" --shrink 256 --driver "$TEST_TMPDIR/gpu.so" --blas "$TEST_TMPDIR/gpu.so" >"$out" 2>&1 || fail "expected figures"
grep -Eq '^copy\|[0-9.]+\|[0-9]+ GB/s read and written' "$out" || fail "expected the copy"
grep -Eq '^product gpt2 up\|[0-9.]+\|.* by cuBLASLt; cuBLASLt bare [0-9.]+ ms, [0-9.]+ % of its rate' "$out" || fail "expected a product beside the library's own"
rm "$folder/bin/device_bench"

# Wrong losses and a wrong gradient are reported by name.
sed -i '/"losses"/,/]/s/[0-9]\.[0-9]/9.9/' "$folder/expected/gpt2.losses"
cp "$folder/expected/gpt2.step/grad.transformer.h.0.ln_1.bias.npy" "$folder/expected/gpt2.step/grad.transformer.h.0.ln_2.bias.npy"
PARTITA_GPU_ONLY='gpt2.whole*' $here/run "$folder" >"$out" 2>&1 && fail "expected failures"
grep -Eq '^gpt2.whole run +passed' "$out" || fail "expected that the rest passes"
grep -Eq '^gpt2.whole.step run +failed .* apart \(grad.transformer.h.0.ln_2.bias\), 1e-03 allowed' "$out" || fail "expected the gradient's name"
grep -Eq '^gpt2.whole.step train +failed .* apart \(step' "$out" || fail "expected the step"

# Attention runs by both kernels, and prints both times.
mkdir -p "$folder/benchmarks"
$here/attention_model 1 4 2 16 8 causal lse >"$TEST_TMPDIR/attention-small.mlir" || fail "expected a model"
$PARTITA compile "$TEST_TMPDIR/attention-small.mlir" -o "$folder/benchmarks/attention-small.partita" >"$out" 2>&1 || fail "expected an artifact"
echo "attention-small|attention|attention-small.partita|--random-inputs 1" >"$folder/benchmarks/list"
PARTITA_GPU_ONLY='bench attention*' $here/run "$folder" >"$out" 2>&1 || fail "expected success"
grep -Eq '^bench attention-small +passed .* [0-9.]+ ms, [0-9]+ GB/s; not computed by cuDNN \(absent or refused\); no PyTorch' "$out" || fail "expected one time"
cat >"$folder/bin/partita-run" <<'END'
#!/bin/bash
case $PARTITA_CUDA_ATTENTION in
  launch) name="attend" ms=3 ;;
  cudnn) name="attend (cuDNN)" ms=2 ;;
esac
printf '{\n"profile": [\n{\n"name": "%s",\n"bytes": 6e6,\n"ms": %s\n}\n]\n}\n' "$name" $ms
END
chmod +x "$folder/bin/partita-run"
PARTITA_GPU_ONLY='bench attention*' $here/run "$folder" "$TEST_TMPDIR/results.json" >"$out" 2>&1 || fail "expected success"
grep -Eq '^bench attention-small +passed .* 3.000 ms, 2 GB/s; cuDNN 2.000 ms, ratio 1.50; no PyTorch' "$out" || fail "expected both times"
grep -q '"ms": 3, "cudnn_ms": 2}' "$TEST_TMPDIR/results.json" || fail "expected both times in JSON"

rm -r "$folder/benchmarks"

# A hanging case is killed; a case without time left is named.
printf '#!/bin/bash\nsleep 100\n' >"$folder/bin/partita-run"
chmod +x "$folder/bin/partita-run"
PARTITA_GPU_TEST_SECONDS=1 PARTITA_GPU_SECONDS=2 $here/run "$folder" >"$out" 2>&1 && fail "expected failures"
grep -Eq '^gpt2.whole run +failed .*not done within 1 s' "$out" || fail "expected an end of what hangs"
grep -Eq '^gpt2.D2.step run +skipped .*no time was left' "$out" || fail "expected what was skipped"
exit 0
