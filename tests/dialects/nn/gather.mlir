// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @gather
// CHECK: nn.gather %arg0[%arg1] axes = [0] : tensor<100x8xf32>, tensor<2x5x1xi64> -> tensor<2x5x8xf32>
// CHECK: nn.gather %arg2[%arg3] axes = [1] batch_dims = 1 : tensor<2x5x8xf32>, tensor<2x3x1xi32> -> tensor<2x3x8xf32>
func.func @gather(%table: tensor<100x8xf32>, %ids: tensor<2x5x1xi64>, %b: tensor<2x5x8xf32>, %i: tensor<2x3x1xi32>) {
  %y = nn.gather %table[%ids] axes = [0] : tensor<100x8xf32>, tensor<2x5x1xi64> -> tensor<2x5x8xf32>
  %z = nn.gather %b[%i] axes = [1] batch_dims = 1 : tensor<2x5x8xf32>, tensor<2x3x1xi32> -> tensor<2x3x8xf32>
  return
}
