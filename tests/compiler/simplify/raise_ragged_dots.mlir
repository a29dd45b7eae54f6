// RUN: partita-opt %s --partita-raise-composites --split-input-file | FileCheck %s

// Groups of rows, whose sizes are data, times a matrix each. The last rows may be in no group.
// CHECK-LABEL: @product
// CHECK: %[[ENDS:.*]] = nn.reduce_window sum %arg2
// CHECK: %[[PAST:.*]] = arith.cmpi sge, %{{.*}}, %{{.*}} : tensor<8x3xi32>
// CHECK: %[[IDS:.*]] = nn.reduce sum %{{.*}} dims = [1] : tensor<8x3xi64> -> tensor<8xi64>
// CHECK: nn.grouped_dot %arg0[%[[IDS]]], %arg1 transposed : tensor<8x4xf32>, tensor<8xi64>, tensor<3x4x5xf32> -> tensor<8x5xf32>
// CHECK-NOT: nn.dot_general
func.func @product(%x: tensor<8x4xf32>, %w: tensor<3x4x5xf32>, %sizes: tensor<3xi32>) -> tensor<8x5xf32> {
  %ends = nn.reduce_window sum %sizes window = [3] strides = [1] dilations = [1] low = [2] high = [0] : tensor<3xi32> -> tensor<3xi32>
  %none = arith.constant dense<0> : tensor<1xi32>
  %most = nn.slice %ends starts = [0] strides = [1] : tensor<3xi32> -> tensor<2xi32>
  %starts = nn.concat %none, %most axis = 0 : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %row = nn.iota dim = 1 : tensor<3x8x4xi32>
  %start = nn.broadcast %starts dims = [0] : tensor<3xi32> -> tensor<3x8x4xi32>
  %end = nn.broadcast %ends dims = [0] : tensor<3xi32> -> tensor<3x8x4xi32>
  %a = arith.cmpi sle, %start, %row : tensor<3x8x4xi32>
  %b = arith.cmpi slt, %row, %end : tensor<3x8x4xi32>
  %mask = arith.andi %a, %b : tensor<3x8x4xi1>
  %rows = nn.broadcast %x dims = [1, 2] : tensor<8x4xf32> -> tensor<3x8x4xf32>
  %zero = arith.constant dense<0.0> : tensor<3x8x4xf32>
  %masked = arith.select %mask, %rows, %zero : tensor<3x8x4xi1>, tensor<3x8x4xf32>
  %y = nn.dot_general %masked, %w contract = [2, 0] x [1, 0] : tensor<3x8x4xf32>, tensor<3x4x5xf32> -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// -----

// Rows are repeated for groups, but the mask is another one.
// CHECK-LABEL: @other_mask
// CHECK: nn.dot_general
// CHECK-NOT: nn.grouped_dot
func.func @other_mask(%x: tensor<8x4xf32>, %w: tensor<3x4x5xf32>, %ends: tensor<3xi32>) -> tensor<8x5xf32> {
  %row = nn.iota dim = 1 : tensor<3x8x4xi32>
  %end = nn.broadcast %ends dims = [0] : tensor<3xi32> -> tensor<3x8x4xi32>
  %mask = arith.cmpi slt, %row, %end : tensor<3x8x4xi32>
  %rows = nn.broadcast %x dims = [1, 2] : tensor<8x4xf32> -> tensor<3x8x4xf32>
  %zero = arith.constant dense<0.0> : tensor<3x8x4xf32>
  %masked = arith.select %mask, %rows, %zero : tensor<3x8x4xi1>, tensor<3x8x4xf32>
  %y = nn.dot_general %masked, %w contract = [2, 0] x [1, 0] : tensor<3x8x4xf32>, tensor<3x4x5xf32> -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// -----

// Tensors without elements have no rows to follow.
// CHECK-LABEL: @empty
// CHECK-NOT: nn.grouped_dot
// CHECK: return
func.func @empty(%x: tensor<6x0xf32>, %w: tensor<2x0x5xf32>) -> tensor<3x5xf32> {
  %r = nn.reshape %x : tensor<6x0xf32> -> tensor<2x3x0xf32>
  %y = nn.dot_general %r, %w contract = [0, 2] x [0, 1] : tensor<2x3x0xf32>, tensor<2x0x5xf32> -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
