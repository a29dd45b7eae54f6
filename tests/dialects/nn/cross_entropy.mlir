// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @cross_entropy
// CHECK: nn.cross_entropy %arg0, %arg1 : tensor<2x5x9xf32>, tensor<2x5xi64> -> tensor<2x5xf32>
// CHECK: nn.cross_entropy %arg0, %arg1 ignore_index = 0 label_smoothing = 1.000000e-01 : tensor<2x5x9xf32>, tensor<2x5xi64> -> tensor<2x5xf32>
func.func @cross_entropy(%z: tensor<2x5x9xf32>, %t: tensor<2x5xi64>) {
  %l = nn.cross_entropy %z, %t ignore_index = -100 : tensor<2x5x9xf32>, tensor<2x5xi64> -> tensor<2x5xf32>
  %m = nn.cross_entropy %z, %t ignore_index = 0 label_smoothing = 1.000000e-01 : tensor<2x5x9xf32>, tensor<2x5xi64> -> tensor<2x5xf32>
  return
}
