// RUN: partita-opt %s --split-input-file --partita-raise-composites | FileCheck %s

// Positions from 2 to 4.
// CHECK-LABEL: func @rows
// CHECK: %[[S:.*]] = nn.slice %{{.*}} starts = [2, 0] strides = [1, 1] : tensor<6x4xf32> -> tensor<3x4xf32>
// CHECK: nn.reshape %[[S]] : tensor<3x4xf32> -> tensor<1x3x4xf32>
func.func @rows(%x: tensor<6x4xf32>) -> tensor<1x3x4xf32> {
  %i = arith.constant dense<[[[2], [3], [4]]]> : tensor<1x3x1xi64>
  %y = nn.gather %x[%i] axes = [0] : tensor<6x4xf32>, tensor<1x3x1xi64> -> tensor<1x3x4xf32>
  return %y : tensor<1x3x4xf32>
}

// -----

// CHECK-LABEL: func @other_order
// CHECK: nn.gather
func.func @other_order(%x: tensor<6x4xf32>) -> tensor<2x4xf32> {
  %i = arith.constant dense<[[3], [2]]> : tensor<2x1xi64>
  %y = nn.gather %x[%i] axes = [0] : tensor<6x4xf32>, tensor<2x1xi64> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// A gather clamps what a slice may not read.
// CHECK-LABEL: func @beyond
// CHECK: nn.gather
func.func @beyond(%x: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %i = arith.constant dense<[[2], [3]]> : tensor<2x1xi64>
  %y = nn.gather %x[%i] axes = [0] : tensor<3x4xf32>, tensor<2x1xi64> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
