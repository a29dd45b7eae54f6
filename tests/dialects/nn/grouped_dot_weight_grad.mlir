// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @grouped_dot_weight_grad
// CHECK: nn.grouped_dot_weight_grad %arg0[%arg1], %arg2 : tensor<6x4xf32>, tensor<6xi64>, tensor<6x5xf32> -> tensor<3x5x4xf32>
func.func @grouped_dot_weight_grad(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %g: tensor<6x5xf32>) {
  %d = nn.grouped_dot_weight_grad %x[%ids], %g : tensor<6x4xf32>, tensor<6xi64>, tensor<6x5xf32> -> tensor<3x5x4xf32>
  return
}
