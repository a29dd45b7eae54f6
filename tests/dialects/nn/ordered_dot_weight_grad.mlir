// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @ordered_dot_weight_grad
// CHECK: nn.ordered_dot_weight_grad %arg0[%arg1], %arg2 : tensor<6x4xf32>, tensor<11xi32>, tensor<6x5xf32> -> tensor<3x5x4xf32>
func.func @ordered_dot_weight_grad(%x: tensor<6x4xf32>, %o: tensor<11xi32>, %g: tensor<6x5xf32>) {
  %d = nn.ordered_dot_weight_grad %x[%o], %g : tensor<6x4xf32>, tensor<11xi32>, tensor<6x5xf32> -> tensor<3x5x4xf32>
  return
}
