// Work that the operands do not tell: the products of attention, and bytes that slices and gathers do not read.
// RUN: partita-opt %s --partita-count-work | FileCheck %s

!t = tensor<1x2x8x4xf32>
func.func private @attend(%q: !t, %k: !t, %v: !t) -> !t attributes {exec.kernel} {
  %0 = nn.attention %q, %k, %v scale = 5.0e-1 causal_offset = 0 : (!t, !t, !t) -> !t
  return %0 : !t
}
func.func private @attend_window(%q: !t, %k: !t, %v: !t) -> !t attributes {exec.kernel} {
  %0 = nn.attention %q, %k, %v scale = 5.0e-1 causal_offset = 0 window = 2 : (!t, !t, !t) -> !t
  return %0 : !t
}
func.func private @cut(%x: tensor<8xf32>) -> tensor<2xf32> attributes {exec.kernel} {
  %0 = nn.slice %x starts = [4] strides = [1] : tensor<8xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// A row has the products of one matrix, however many there are. A quarter of the rows of @sums have a matrix.
func.func private @few(%x: tensor<6x4xf32>, %o: tensor<10xi32>, %w: tensor<2x5x4xf32>) -> tensor<6x5xf32> attributes {exec.kernel} {
  %0 = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<10xi32>, tensor<2x5x4xf32> -> tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}
func.func private @many(%x: tensor<6x4xf32>, %o: tensor<72xi32>, %w: tensor<64x5x4xf32>) -> tensor<6x5xf32> attributes {exec.kernel} {
  %0 = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<72xi32>, tensor<64x5x4xf32> -> tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}
func.func private @sums(%x: tensor<6x4xf32>, %o: tensor<72xi32>, %g: tensor<6x5xf32>) -> tensor<64x5x4xf32> attributes {exec.kernel} {
  %0 = nn.ordered_dot_weight_grad %x[%o], %g {nn.row_share = 2.5e-1 : f64} : tensor<6x4xf32>, tensor<72xi32>, tensor<6x5xf32> -> tensor<64x5x4xf32>
  return %0 : tensor<64x5x4xf32>
}
func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel} {
  %0 = arith.addf %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// 36 visible pairs in each of 2 heads, 2 products of length 4, a multiplication and an addition. The window leaves 15 pairs. 6 rows of 4 elements give
// 5 elements each.
// CHECK-LABEL: @main
// CHECK: exec.launch @attend({{.*}}) {operations = 1152 : i64}
// CHECK: exec.launch @attend_window({{.*}}) {operations = 480 : i64}
// CHECK: exec.launch @cut({{.*}}) {unread = 24 : i64}
// CHECK-COUNT-2: exec.launch @{{few|many}}({{.*}}) {operations = 240 : i64}
// CHECK: exec.launch @sums({{.*}}) {operations = 60 : i64}
// CHECK: exec.launch @double({{.*}}) :
func.func @main(%q: !t, %k: !t, %v: !t, %x: tensor<8xf32>, %rows: tensor<6x4xf32>, %of2: tensor<10xi32>, %of64: tensor<72xi32>, %w2: tensor<2x5x4xf32>, %w64: tensor<64x5x4xf32>) -> (!t, tensor<2xf32>) {
  %0 = exec.launch @attend(%q, %k, %v) : (!t, !t, !t) -> !t
  %w = exec.launch @attend_window(%q, %k, %v) : (!t, !t, !t) -> !t
  %1 = exec.launch @cut(%x) : (tensor<8xf32>) -> tensor<2xf32>
  %y2 = exec.launch @few(%rows, %of2, %w2) : (tensor<6x4xf32>, tensor<10xi32>, tensor<2x5x4xf32>) -> tensor<6x5xf32>
  %y64 = exec.launch @many(%rows, %of64, %w64) : (tensor<6x4xf32>, tensor<72xi32>, tensor<64x5x4xf32>) -> tensor<6x5xf32>
  %d = exec.launch @sums(%rows, %of64, %y2) : (tensor<6x4xf32>, tensor<72xi32>, tensor<6x5xf32>) -> tensor<64x5x4xf32>
  %2 = exec.launch @double(%1) {operations = 7 : i64, unread = 7 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %2 : !t, tensor<2xf32>
}
