// A kernel with two parts: the second launch continues from the first launch's results, and has the tensor maps.
// RUN: partita-opt %s --partita-split-launches | FileCheck %s

!t = tensor<1x2x16x32xbf16>
// CHECK: func.func private @k(
// CHECK-NOT: kernel.parts
// CHECK: func.func private @k_part_0({{.*}}) -> ({{.*}}) attributes {exec.kernel, kernel.part_of = @k}
func.func private @k(%q: !t, %k: !t, %v: !t, %y: !t, %g: !t) -> (!t, !t, !t)
    attributes {exec.kernel, kernel.parts = [
      {blocks = 3 : i64, code = "k_part_0", products_of_keys = 2 : i64, products_of_values = 1 : i64, scratch = 64 : i64, shared = 0 : i64, untouched = 4096 : i64},
      {blocks = 8 : i64, code = "k", products_of_keys = 1 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 512 : i64, untouched = 0 : i64}]} {
  %0:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.25e-1 : (!t, !t, !t, !t, !t) -> (!t, !t, !t)
  return %0#0, %0#1, %0#2 : !t, !t, !t
}

// 512 pairs, products of length 32, a multiplication and an addition.
// CHECK-LABEL: @main
// CHECK: %[[BEGUN:.*]]:3 = exec.launch @k_part_0(%arg0, %arg1, %arg2, %arg3, %arg4)
// CHECK-SAME: {blocks = 3 : i64, exec.offsets = array<i64: -1, 0, -3>, operations = 98304 : i64, scratch = 64 : i64, threads = 128 : i64, unread = 4096 : i64}
// CHECK: %[[DONE:.*]]:3 = exec.launch @k(%arg0, %arg1, %arg2, %arg3, %arg4) into(%[[BEGUN]]#0, %[[BEGUN]]#1, %[[BEGUN]]#2 :
// CHECK-SAME: {blocks = 8 : i64, maps = [{{.*}}], operations = 32768 : i64, scratch = 0 : i64, shared = 512 : i64, threads = 128 : i64}
// CHECK: exec.launch @other(%[[DONE]]#1)
func.func private @other(%x: !t) -> !t attributes {exec.kernel} {
  return %x : !t
}
func.func @main(%q: !t, %k: !t, %v: !t, %y: !t, %g: !t) -> (!t, !t, !t) attributes {exec.frame_bytes = 2048 : i64} {
  %0:3 = exec.launch @k(%q, %k, %v, %y, %g) {blocks = 8 : i64, threads = 128 : i64, scratch = 0 : i64, shared = 512 : i64,
    maps = [#exec.tensor_map<operand 0 offset 0 shape [2, 16, 32] strides [1024, 64] box [1, 16, 32]>],
    exec.offsets = array<i64: -1, 0, -3>} : (!t, !t, !t, !t, !t) -> (!t, !t, !t)
  %1 = exec.launch @other(%0#1) {blocks = 1 : i64, threads = 128 : i64, scratch = 0 : i64, exec.offsets = array<i64: -2>} : (!t) -> !t
  return %0#0, %1, %0#2 : !t, !t, !t
}
