// RUN: partita-opt %s --partita-split-backward="cells=1.0;1.2" | FileCheck %s

// Calls in other cells are not split, and their function stays.
// CHECK-LABEL: func.func private @layer_backward(
// CHECK-LABEL: func.func @main(
// CHECK: call @layer_backward_input({{.*}}) {nn.backward = "input", nn.microbatch = 0 : i64, nn.stage = 1 : i64}
// CHECK: call @layer_backward_weight({{.*}}) {nn.backward = "weight", nn.microbatch = 0 : i64, nn.stage = 1 : i64}
// CHECK: call @layer_backward({{.*}}) {nn.backward, nn.microbatch = 1 : i64, nn.stage = 1 : i64}
func.func private @layer_backward(%x: tensor<4x5xf32>, %dy: tensor<4x5xf32>, %w: tensor<5x5xf32>) -> (tensor<4x5xf32>, tensor<5x5xf32>) {
  %dx = nn.dot_general %dy, %w contract = [1] x [1] : tensor<4x5xf32>, tensor<5x5xf32> -> tensor<4x5xf32>
  %dw = nn.dot_general %x, %dy contract = [0] x [0] : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<5x5xf32>
  return %dx, %dw : tensor<4x5xf32>, tensor<5x5xf32>
}
func.func private @first_backward(tensor<4x5xf32>) -> tensor<5xf32>
func.func @main(%x: tensor<4x5xf32>, %w: tensor<5x5xf32>) -> (tensor<5x5xf32>, tensor<5x5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %0:2 = call @layer_backward(%x, %x, %w) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 1 : i64} : (tensor<4x5xf32>, tensor<4x5xf32>, tensor<5x5xf32>) -> (tensor<4x5xf32>, tensor<5x5xf32>)
  %1:2 = call @layer_backward(%x, %x, %w) {nn.backward, nn.microbatch = 1 : i64, nn.stage = 1 : i64} : (tensor<4x5xf32>, tensor<4x5xf32>, tensor<5x5xf32>) -> (tensor<4x5xf32>, tensor<5x5xf32>)
  %2 = call @first_backward(%0#0) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 0 : i64} : (tensor<4x5xf32>) -> tensor<5xf32>
  %3 = call @first_backward(%1#0) {nn.backward, nn.microbatch = 1 : i64, nn.stage = 0 : i64} : (tensor<4x5xf32>) -> tensor<5xf32>
  return %0#1, %1#1, %2, %3 : tensor<5x5xf32>, tensor<5x5xf32>, tensor<5xf32>, tensor<5xf32>
}
