// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @grouped_dot
// CHECK: nn.grouped_dot %arg0[%arg1], %arg2 : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
// CHECK: nn.grouped_dot %arg0[%arg1], %arg3 transposed : tensor<6x4xf32>, tensor<6xi64>, tensor<3x4x5xf32> -> tensor<6x5xf32>
func.func @grouped_dot(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %w: tensor<3x5x4xf32>, %v: tensor<3x4x5xf32>) {
  %y = nn.grouped_dot %x[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  %z = nn.grouped_dot %x[%ids], %v transposed : tensor<6x4xf32>, tensor<6xi64>, tensor<3x4x5xf32> -> tensor<6x5xf32>
  return
}
