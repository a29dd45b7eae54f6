// The parts of a kernel have their own tensor maps: here the first one copies boxes, and the last one does not.
// RUN: partita-opt %s --partita-split-launches | FileCheck %s

!t = tensor<1x2x16x64xbf16>
// CHECK-NOT: kernel.part_maps
func.func private @k(%q: !t, %k: !t, %v: !t, %y: !t, %g: !t) -> (!t, !t, !t)
    attributes {exec.kernel, kernel.part_maps = [
      [#exec.tensor_map<operand 4 offset 0 shape [2, 16, 64] strides [2048, 128] box [1, 16, 64]>], []],
    kernel.parts = [
      {blocks = 3 : i64, code = "k_part_0", products_of_keys = 2 : i64, products_of_values = 1 : i64, scratch = 64 : i64, shared = 0 : i64, untouched = 4096 : i64},
      {blocks = 8 : i64, code = "k", products_of_keys = 1 : i64, products_of_values = 0 : i64, scratch = 64 : i64, shared = 512 : i64, untouched = 0 : i64}]} {
  %0:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.25e-1 : (!t, !t, !t, !t, !t) -> (!t, !t, !t)
  return %0#0, %0#1, %0#2 : !t, !t, !t
}

// CHECK-LABEL: @main
// CHECK: exec.launch @k_part_0(
// CHECK-SAME: maps = [#exec.tensor_map<operand 4 offset 0
// CHECK: exec.launch @k(
// CHECK-NOT: maps
// CHECK: return
func.func @main(%q: !t, %k: !t, %v: !t, %y: !t, %g: !t) -> (!t, !t, !t) attributes {exec.frame_bytes = 2048 : i64} {
  %0:3 = exec.launch @k(%q, %k, %v, %y, %g) {blocks = 8 : i64, threads = 128 : i64, scratch = 64 : i64, shared = 512 : i64,
    exec.offsets = array<i64: -1, -3, -5>} : (!t, !t, !t, !t, !t) -> (!t, !t, !t)
  return %0#0, %0#1, %0#2 : !t, !t, !t
}
