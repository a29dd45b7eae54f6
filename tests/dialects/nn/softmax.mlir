// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @softmax
// CHECK: nn.softmax %arg0 axis = 1 : tensor<2x3xf32>
// CHECK: nn.softmax log %arg0 axis = 0 : tensor<2x3xf32>
func.func @softmax(%x: tensor<2x3xf32>) {
  %y = nn.softmax %x axis = 1 : tensor<2x3xf32>
  %z = nn.softmax log %x axis = 0 : tensor<2x3xf32>
  return
}
