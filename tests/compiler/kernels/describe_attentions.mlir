// Launches on GPUs of kernels that compute one attention say so, with its tensors as strided views of operands.
// RUN: partita-opt %s --partita-describe-attentions | FileCheck %s

!q = tensor<2x4x8x16xf16>
!kv = tensor<2x2x8x16xf16>
!lse = tensor<2x4x8xf32>

// Views of one buffer of all heads by tokens; the result is stored by tokens, too.
func.func private @joint(%x: tensor<2x8x128xf16>) -> (tensor<2x8x64xf16>, !lse) attributes {exec.kernel} {
  %0 = nn.slice %x starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x8x128xf16> -> tensor<2x8x64xf16>
  %1 = nn.reshape %0 : tensor<2x8x64xf16> -> tensor<2x8x4x16xf16>
  %q = nn.transpose %1 perm = [0, 2, 1, 3] : tensor<2x8x4x16xf16> -> !q
  %2 = nn.slice %x starts = [0, 0, 64] strides = [1, 1, 1] : tensor<2x8x128xf16> -> tensor<2x8x32xf16>
  %3 = nn.reshape %2 : tensor<2x8x32xf16> -> tensor<2x8x2x16xf16>
  %k = nn.transpose %3 perm = [0, 2, 1, 3] : tensor<2x8x2x16xf16> -> !kv
  %4 = nn.slice %x starts = [0, 0, 96] strides = [1, 1, 1] : tensor<2x8x128xf16> -> tensor<2x8x32xf16>
  %5 = nn.reshape %4 : tensor<2x8x32xf16> -> tensor<2x8x2x16xf16>
  %v = nn.transpose %5 perm = [0, 2, 1, 3] : tensor<2x8x2x16xf16> -> !kv
  %y, %lse = nn.attention %q, %k, %v scale = 2.5e-1 causal_offset = 0 : (!q, !kv, !kv) -> (!q, !lse)
  %6 = nn.transpose %y perm = [0, 2, 1, 3] : !q -> tensor<2x8x4x16xf16>
  %7 = nn.reshape %6 : tensor<2x8x4x16xf16> -> tensor<2x8x64xf16>
  return %7, %lse : tensor<2x8x64xf16>, !lse
}
func.func private @plain(%q: !q, %k: !kv, %v: !kv) -> !q attributes {exec.kernel} {
  %y = nn.attention %q, %k, %v scale = 2.5e-1 : (!q, !kv, !kv) -> !q
  return %y : !q
}
// Kernels that compute more, and attentions with other masks.
func.func private @more(%q: !q, %k: !kv, %v: !kv) -> !q attributes {exec.kernel} {
  %y = nn.attention %q, %k, %v scale = 2.5e-1 : (!q, !kv, !kv) -> !q
  %0 = math.tanh %y : !q
  return %0 : !q
}
func.func private @before(%q: !q, %k: !kv, %v: !kv) -> !q attributes {exec.kernel} {
  %0 = math.tanh %q : !q
  %y = nn.attention %0, %k, %v scale = 2.5e-1 : (!q, !kv, !kv) -> !q
  return %y : !q
}
// One key for all positions: a broadcast.
func.func private @broadcast(%q: !q, %k: tensor<2x2x1x16xf16>, %v: !kv) -> !q attributes {exec.kernel} {
  %0 = nn.broadcast %k dims = [0, 1, 2, 3] : tensor<2x2x1x16xf16> -> !kv
  %y = nn.attention %q, %0, %v scale = 2.5e-1 : (!q, !kv, !kv) -> !q
  return %y : !q
}
func.func private @window(%q: !q, %k: !kv, %v: !kv) -> !q attributes {exec.kernel} {
  %y = nn.attention %q, %k, %v scale = 2.5e-1 causal_offset = 0 window = 2 : (!q, !kv, !kv) -> !q
  return %y : !q
}
// Query 0 sees no key.
func.func private @blind(%q: !q, %k: !kv, %v: !kv) -> !q attributes {exec.kernel} {
  %y = nn.attention %q, %k, %v scale = 2.5e-1 causal_offset = -1 : (!q, !kv, !kv) -> !q
  return %y : !q
}
// The last query is not the last key.
func.func private @early(%q: !q, %k: !kv, %v: !kv) -> !q attributes {exec.kernel} {
  %y = nn.attention %q, %k, %v scale = 2.5e-1 causal_offset = 3 : (!q, !kv, !kv) -> !q
  return %y : !q
}
// A malformed list of parts, which partita-split-launches refuses.
func.func private @malformed(%q: !q, %k: !kv, %v: !kv) -> !q attributes {exec.kernel, kernel.parts = [3]} {
  %y = nn.attention %q, %k, %v scale = 2.5e-1 : (!q, !kv, !kv) -> !q
  return %y : !q
}

// CHECK-LABEL: @main
func.func @main(%x: tensor<2x8x128xf16>, %q: !q, %k: !kv, %v: !kv, %one: tensor<2x2x1x16xf16>) -> (tensor<2x8x64xf16>, !lse, !q, !q, !q, !q, !q, !q, !q, !q, !q) {
  // CHECK: exec.launch @joint
  // CHECK-SAME: exec.attention = {batch = 2 : i64, causal_offset = 0 : i64, groups = 2 : i64, heads = 4 : i64,
  // CHECK-SAME: k = array<i64: 0, 64, 1024, 16, 128>, keys = 8 : i64, lse = 2 : i64, out = array<i64: 1, 0, 512, 16, 64>,
  // CHECK-SAME: q = array<i64: 0, 0, 1024, 16, 128>, queries = 8 : i64, scale = 2.500000e-01 : f64, size = 16 : i64,
  // CHECK-SAME: v = array<i64: 0, 96, 1024, 16, 128>, value_size = 16 : i64}
  %0:2 = exec.launch @joint(%x) {blocks = 4 : i64} : (tensor<2x8x128xf16>) -> (tensor<2x8x64xf16>, !lse)
  // CHECK: exec.launch @plain
  // CHECK-SAME: exec.attention = {batch = 2 : i64, groups = 2 : i64,
  // CHECK-SAME: lse = -1 : i64, out = array<i64: 3, 0, 512, 128, 16>, q = array<i64: 0, 0, 512, 128, 16>
  %1 = exec.launch @plain(%q, %k, %v) {blocks = 4 : i64} : (!q, !kv, !kv) -> !q
  // A CPU has no blocks.
  // CHECK-NOT: exec.attention
  %2 = exec.launch @plain(%q, %k, %v) {range = 4 : i64} : (!q, !kv, !kv) -> !q
  %3 = exec.launch @more(%q, %k, %v) {blocks = 4 : i64} : (!q, !kv, !kv) -> !q
  %4 = exec.launch @before(%q, %k, %v) {blocks = 4 : i64} : (!q, !kv, !kv) -> !q
  %5 = exec.launch @window(%q, %k, %v) {blocks = 4 : i64} : (!q, !kv, !kv) -> !q
  %6 = exec.launch @blind(%q, %k, %v) {blocks = 4 : i64} : (!q, !kv, !kv) -> !q
  %7 = exec.launch @early(%q, %k, %v) {blocks = 4 : i64} : (!q, !kv, !kv) -> !q
  %8 = exec.launch @malformed(%q, %k, %v) {blocks = 4 : i64} : (!q, !kv, !kv) -> !q
  %9 = exec.launch @broadcast(%q, %one, %v) {blocks = 4 : i64} : (!q, tensor<2x2x1x16xf16>, !kv) -> !q
  return %0#0, %0#1, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<2x8x64xf16>, !lse, !q, !q, !q, !q, !q, !q, !q, !q, !q
}
