// RUN: partita-opt %s "--partita-differentiate=train=*;!teacher.*" | FileCheck %s

// A function that computes two values apart: only the one that depends on the trained parameter has a gradient, and the
// call before it, which the other value depends on, is not differentiated.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<4xf32> {nn.name = "grad.w"})
// CHECK: call @square(
// CHECK: call @pair_forward
// CHECK-NOT: call @square_backward
// CHECK: return
func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.mulf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @pair(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = math.tanh %x : tensor<4xf32>
  %1 = math.tanh %y : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func @main(%w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w"}, %t: tensor<4xf32> {nn.kind = "parameter", nn.name = "teacher.w"})
    -> (tensor<f32> {nn.name = "loss"}) {
  %0 = call @square(%t) : (tensor<4xf32>) -> tensor<4xf32>
  %1:2 = call @pair(%0, %w) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %2 = arith.mulf %1#0, %1#1 : tensor<4xf32>
  %3 = nn.reduce sum %2 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %3 : tensor<f32>
}
