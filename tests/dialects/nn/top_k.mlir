// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @top_k
// CHECK: nn.top_k %arg0 largest = true : tensor<2x9xf32> -> tensor<2x3xf32>, tensor<2x3xi64>
func.func @top_k(%x: tensor<2x9xf32>) {
  %v, %i = nn.top_k %x largest = true : tensor<2x9xf32> -> tensor<2x3xf32>, tensor<2x3xi64>
  return
}
