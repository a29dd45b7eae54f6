// RUN: partita-opt %s --partita-attach-loss=loss=mse | FileCheck %s

// Updates of buffers stay results; other outputs, and states, which only a run
// step by step updates, do not.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.updates = "range"})
// CHECK: %[[R:.*]] = nn.reduce max
// CHECK: return %{{.*}}, %[[R]] : tensor<f32>, tensor<f32>
func.func @main(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"}, %w: tensor<4x3xf32> {nn.kind = "parameter", nn.name = "w"},
                %r: tensor<f32> {nn.kind = "buffer", nn.name = "range"}, %s: tensor<f32> {nn.kind = "state", nn.name = "sum"})
    -> (tensor<4x3xf32> {nn.name = "y"}, tensor<f32> {nn.updates = "sum"}, tensor<f32> {nn.updates = "range"}) {
  %0 = arith.mulf %x, %w : tensor<4x3xf32>
  %1 = nn.reduce max %0 dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  %2 = nn.reduce sum %0 dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  return %0, %2, %1 : tensor<4x3xf32>, tensor<f32>, tensor<f32>
}
