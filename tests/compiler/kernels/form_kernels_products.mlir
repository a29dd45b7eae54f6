// RUN: partita-opt %s --partita-form-kernels --split-input-file | FileCheck %s

// Two products of the same rows become one kernel with the elementwise operations on their results.
// CHECK-LABEL: @gated
// CHECK: %[[Y:.*]] = exec.launch @kernel_0(%arg0, %arg1, %arg2, %arg3)
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @kernel_0
// CHECK-COUNT-2: nn.ordered_dot
// CHECK: arith.mulf
func.func @gated(%x: tensor<6x4xbf16>, %o: tensor<11xi32>, %w: tensor<3x8x4xbf16>, %v: tensor<3x8x4xbf16>) -> tensor<6x8xbf16> {
  %g = nn.ordered_dot %x[%o], %w : tensor<6x4xbf16>, tensor<11xi32>, tensor<3x8x4xbf16> -> tensor<6x8xbf16>
  %u = nn.ordered_dot %x[%o], %v : tensor<6x4xbf16>, tensor<11xi32>, tensor<3x8x4xbf16> -> tensor<6x8xbf16>
  %y = arith.mulf %g, %u : tensor<6x8xbf16>
  return %y : tensor<6x8xbf16>
}

// -----

// Products of other rows have a kernel of their own.
// CHECK-LABEL: @other_rows
// CHECK-COUNT-2: exec.launch
// CHECK-NOT: exec.launch
// CHECK: return
func.func @other_rows(%x: tensor<6x4xbf16>, %z: tensor<6x4xbf16>, %o: tensor<11xi32>, %w: tensor<3x8x4xbf16>) -> tensor<6x8xbf16> {
  %g = nn.ordered_dot %x[%o], %w : tensor<6x4xbf16>, tensor<11xi32>, tensor<3x8x4xbf16> -> tensor<6x8xbf16>
  %u = nn.ordered_dot %z[%o], %w : tensor<6x4xbf16>, tensor<11xi32>, tensor<3x8x4xbf16> -> tensor<6x8xbf16>
  %y = arith.mulf %g, %u : tensor<6x8xbf16>
  return %y : tensor<6x8xbf16>
}

// -----

// A block has a part of a row, so a sum along rows is another kernel, and so is a sum over a token's rows.
// CHECK-LABEL: @sums
// CHECK-COUNT-3: exec.launch
// CHECK-NOT: exec.launch
// CHECK: return
func.func @sums(%x: tensor<6x4xf32>, %o: tensor<11xi32>, %w: tensor<3x8x4xf32>) -> (tensor<6xf32>, tensor<3x8xf32>) {
  %g = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<11xi32>, tensor<3x8x4xf32> -> tensor<6x8xf32>
  %e = math.exp %g : tensor<6x8xf32>
  %s = nn.reduce sum %e dims = [1] : tensor<6x8xf32> -> tensor<6xf32>
  %r = nn.reshape %g : tensor<6x8xf32> -> tensor<3x2x8xf32>
  %t = nn.reduce sum %r dims = [1] : tensor<3x2x8xf32> -> tensor<3x8xf32>
  return %s, %t : tensor<6xf32>, tensor<3x8xf32>
}

// -----

// Nothing is computed twice: a result that others read too stays in memory.
// CHECK-LABEL: @read_elsewhere
// CHECK-COUNT-2: exec.launch
// CHECK-NOT: exec.launch
// CHECK: return
func.func @read_elsewhere(%x: tensor<6x4xf32>, %o: tensor<11xi32>, %w: tensor<3x8x4xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %g = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<11xi32>, tensor<3x8x4xf32> -> tensor<6x8xf32>
  %e = math.exp %g : tensor<6x8xf32>
  return %g, %e : tensor<6x8xf32>, tensor<6x8xf32>
}
