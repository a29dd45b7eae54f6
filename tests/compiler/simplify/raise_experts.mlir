// RUN: partita-opt %s --partita-raise-composites --split-input-file | FileCheck %s

// Experts as grouped products in the rows' own order, with gate and up in one parameter.
// CHECK-LABEL: @gated
// CHECK-DAG: %[[GATE:.*]] = nn.slice %arg3 starts = [0, 0, 0] strides = [1, 1, 1] : tensor<3x10x4xf32> -> tensor<3x5x4xf32>
// CHECK-DAG: %[[UP:.*]] = nn.slice %arg3 starts = [0, 5, 0] strides = [1, 1, 1] : tensor<3x10x4xf32> -> tensor<3x5x4xf32>
// CHECK: nn.experts %arg0[%{{.*}}], %{{.*}} gate(%[[GATE]] : {{.*}}) up(%[[UP]] : {{.*}}) down(%arg4 : tensor<3x4x5xf32>) activation = silu
// CHECK-SAME: tensor<6x4xf32>, tensor<6x2xi64>, tensor<6x2xf32> -> tensor<6x4xf32>
// CHECK-NOT: nn.grouped_dot
func.func @gated(%x: tensor<6x4xf32>, %ids: tensor<12xi64>, %p: tensor<12xf32>, %w: tensor<3x10x4xf32>, %d: tensor<3x4x5xf32>) -> tensor<6x4xf32> {
  %0 = nn.broadcast %x dims = [0, 2] : tensor<6x4xf32> -> tensor<6x2x4xf32>
  %1 = nn.reshape %0 : tensor<6x2x4xf32> -> tensor<12x4xf32>
  %2 = nn.grouped_dot %1[%ids], %w : tensor<12x4xf32>, tensor<12xi64>, tensor<3x10x4xf32> -> tensor<12x10xf32>
  %g = nn.slice %2 starts = [0, 0] strides = [1, 1] : tensor<12x10xf32> -> tensor<12x5xf32>
  %u = nn.slice %2 starts = [0, 5] strides = [1, 1] : tensor<12x10xf32> -> tensor<12x5xf32>
  %one = arith.constant dense<1.0> : tensor<12x5xf32>
  %n = arith.negf %g : tensor<12x5xf32>
  %e = math.exp %n : tensor<12x5xf32>
  %s = arith.addf %e, %one : tensor<12x5xf32>
  %q = arith.divf %one, %s : tensor<12x5xf32>
  %a = arith.mulf %g, %q : tensor<12x5xf32>
  %h = arith.mulf %a, %u : tensor<12x5xf32>
  %y = nn.grouped_dot %h[%ids], %d : tensor<12x5xf32>, tensor<12xi64>, tensor<3x4x5xf32> -> tensor<12x4xf32>
  %b = nn.broadcast %p dims = [0] : tensor<12xf32> -> tensor<12x4xf32>
  %m = arith.mulf %y, %b : tensor<12x4xf32>
  %r = nn.reshape %m : tensor<12x4xf32> -> tensor<6x2x4xf32>
  %sum = nn.reduce sum %r dims = [1] : tensor<6x2x4xf32> -> tensor<6x4xf32>
  return %sum : tensor<6x4xf32>
}

// -----

// Without a gate, with one choice per row and transposed matrices, on positions of two dimensions.
// CHECK-LABEL: @ungated
// CHECK-DAG: %[[UP:.*]] = nn.transpose %arg3 perm = [0, 2, 1]
// CHECK: nn.experts %arg0[%{{.*}}], %{{.*}} up(%[[UP]] : tensor<3x5x4xf32>) down(%arg4 : tensor<3x4x5xf32>) activation = relu
// CHECK-SAME: tensor<2x3x4xf32>, tensor<2x3x1xi64>, tensor<2x3x1xf32> -> tensor<2x3x4xf32>
func.func @ungated(%x: tensor<2x3x4xf32>, %ids: tensor<6xi64>, %p: tensor<6x1xf32>, %w: tensor<3x4x5xf32>, %d: tensor<3x4x5xf32>) -> tensor<6x4xf32> {
  %1 = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %2 = nn.grouped_dot %1[%ids], %w transposed : tensor<6x4xf32>, tensor<6xi64>, tensor<3x4x5xf32> -> tensor<6x5xf32>
  %zero = arith.constant dense<0.0> : tensor<6x5xf32>
  %h = arith.maximumf %2, %zero : tensor<6x5xf32>
  %y = nn.grouped_dot %h[%ids], %d : tensor<6x5xf32>, tensor<6xi64>, tensor<3x4x5xf32> -> tensor<6x4xf32>
  %b = nn.broadcast %p dims = [0, 1] : tensor<6x1xf32> -> tensor<6x4xf32>
  %m = arith.mulf %b, %y : tensor<6x4xf32>
  %r = nn.reshape %m : tensor<6x4xf32> -> tensor<6x1x4xf32>
  %sum = nn.reduce sum %r dims = [1] : tensor<6x1x4xf32> -> tensor<6x4xf32>
  return %sum : tensor<6x4xf32>
}

// -----

// The experts of both products must be the same.
// CHECK-LABEL: @other_ids
// CHECK-NOT: nn.experts
// CHECK: return
func.func @other_ids(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %others: tensor<6xi64>, %p: tensor<6x1xf32>, %w: tensor<3x5x4xf32>, %d: tensor<3x4x5xf32>) -> tensor<6x4xf32> {
  %2 = nn.grouped_dot %x[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  %zero = arith.constant dense<0.0> : tensor<6x5xf32>
  %h = arith.maximumf %2, %zero : tensor<6x5xf32>
  %y = nn.grouped_dot %h[%others], %d : tensor<6x5xf32>, tensor<6xi64>, tensor<3x4x5xf32> -> tensor<6x4xf32>
  %b = nn.broadcast %p dims = [0, 1] : tensor<6x1xf32> -> tensor<6x4xf32>
  %m = arith.mulf %b, %y : tensor<6x4xf32>
  %r = nn.reshape %m : tensor<6x4xf32> -> tensor<6x1x4xf32>
  %sum = nn.reduce sum %r dims = [1] : tensor<6x1x4xf32> -> tensor<6x4xf32>
  return %sum : tensor<6x4xf32>
}

// -----

// Matrices that are gathered for each row, as transformers' batched_mm does.
// CHECK-LABEL: @gathered
// CHECK-DAG: %[[W:.*]], %[[IDS:.*]] = nn.top_k
// CHECK: nn.experts %arg0[%[[IDS]]], %[[W]] up(%arg2 : tensor<3x5x4xf32>) down(%arg3 : tensor<3x4x5xf32>) activation = relu
// CHECK-NOT: nn.gather
func.func @gathered(%x: tensor<6x4xf32>, %scores: tensor<6x3xf32>, %w: tensor<3x5x4xf32>, %d: tensor<3x4x5xf32>) -> tensor<6x4xf32> {
  %p, %ids = nn.top_k %scores largest = true : tensor<6x3xf32> -> tensor<6x2xf32>, tensor<6x2xi64>
  %0 = nn.broadcast %x dims = [0, 2] : tensor<6x4xf32> -> tensor<6x2x4xf32>
  %1 = nn.reshape %0 : tensor<6x2x4xf32> -> tensor<12x4x1xf32>
  %i = nn.reshape %ids : tensor<6x2xi64> -> tensor<12x1xi64>
  %2 = nn.gather %w[%i] axes = [0] : tensor<3x5x4xf32>, tensor<12x1xi64> -> tensor<12x5x4xf32>
  %3 = nn.dot_general %2, %1 batch = [0] x [0] contract = [2] x [1] : tensor<12x5x4xf32>, tensor<12x4x1xf32> -> tensor<12x5x1xf32>
  %4 = nn.reshape %3 : tensor<12x5x1xf32> -> tensor<12x5xf32>
  %zero = arith.constant dense<0.0> : tensor<12x5xf32>
  %h = arith.maximumf %4, %zero : tensor<12x5xf32>
  %5 = nn.reshape %h : tensor<12x5xf32> -> tensor<12x5x1xf32>
  %6 = nn.gather %d[%i] axes = [0] : tensor<3x4x5xf32>, tensor<12x1xi64> -> tensor<12x4x5xf32>
  %7 = nn.dot_general %6, %5 batch = [0] x [0] contract = [2] x [1] : tensor<12x4x5xf32>, tensor<12x5x1xf32> -> tensor<12x4x1xf32>
  %8 = nn.reshape %7 : tensor<12x4x1xf32> -> tensor<12x4xf32>
  %q = nn.reshape %p : tensor<6x2xf32> -> tensor<12xf32>
  %b = nn.broadcast %q dims = [0] : tensor<12xf32> -> tensor<12x4xf32>
  %m = arith.mulf %8, %b : tensor<12x4xf32>
  %r = nn.reshape %m : tensor<12x4xf32> -> tensor<6x2x4xf32>
  %sum = nn.reduce sum %r dims = [1] : tensor<6x2x4xf32> -> tensor<6x4xf32>
  return %sum : tensor<6x4xf32>
}

// -----

// An index may be larger than the number of matrices, where a gather takes the last one.
// CHECK-LABEL: @clamped
// CHECK: nn.dot_general
func.func @clamped(%x: tensor<12x4x1xf32>, %i: tensor<12x1xi64>, %w: tensor<3x5x4xf32>) -> tensor<12x5x1xf32> {
  %0 = nn.gather %w[%i] axes = [0] : tensor<3x5x4xf32>, tensor<12x1xi64> -> tensor<12x5x4xf32>
  %1 = nn.dot_general %0, %x batch = [0] x [0] contract = [2] x [1] : tensor<12x5x4xf32>, tensor<12x4x1xf32> -> tensor<12x5x1xf32>
  return %1 : tensor<12x5x1xf32>
}
