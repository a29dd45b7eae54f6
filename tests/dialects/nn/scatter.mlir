// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @scatter
// CHECK: nn.scatter %arg0[%arg1], %arg2 axes = [0] kind = add : tensor<9x4xf32>, tensor<3x1xi64>, tensor<3x4xf32> -> tensor<9x4xf32>
func.func @scatter(%x: tensor<9x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) {
  %y = nn.scatter %x[%i], %u axes = [0] kind = add : tensor<9x4xf32>, tensor<3x1xi64>, tensor<3x4xf32> -> tensor<9x4xf32>
  return
}
