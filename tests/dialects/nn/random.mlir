// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @random
// CHECK: nn.random uniform %arg0 : tensor<i64> -> tensor<4x4xf32>
// CHECK: nn.random normal %arg0 : tensor<i64> -> tensor<8xf32>
func.func @random(%seed: tensor<i64>) {
  %r = nn.random uniform %seed : tensor<i64> -> tensor<4x4xf32>
  %z = nn.random normal %seed : tensor<i64> -> tensor<8xf32>
  return
}
