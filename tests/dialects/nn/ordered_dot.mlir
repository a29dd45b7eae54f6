// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @ordered_dot
// CHECK: nn.ordered_dot %arg0[%arg1], %arg2 : tensor<6x4xf32>, tensor<11xi32>, tensor<3x5x4xf32> -> tensor<6x5xf32>
// CHECK: nn.ordered_dot %arg0[%arg1], %arg3 transposed : tensor<6x4xf32>, tensor<11xi32>, tensor<3x4x5xf32> -> tensor<6x5xf32>
func.func @ordered_dot(%x: tensor<6x4xf32>, %o: tensor<11xi32>, %w: tensor<3x5x4xf32>, %t: tensor<3x4x5xf32>) {
  %y = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<11xi32>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  %z = nn.ordered_dot %x[%o], %t transposed : tensor<6x4xf32>, tensor<11xi32>, tensor<3x4x5xf32> -> tensor<6x5xf32>
  return
}
