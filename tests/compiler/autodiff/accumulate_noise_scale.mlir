// RUN: partita-opt %s --partita-accumulate="microbatches=2 noise-scale=true" | FileCheck %s

// The squares of both microbatches' gradients and of their sum give two
// results, before the updates: with m = 2, 2 small - big and 2 (big - small).
// CHECK-LABEL: func.func @main(
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<3xf32> {nn.name = "grad.w"}, tensor<f32> {nn.name = "gradient_noise"}, tensor<f32> {nn.name = "gradient_signal"}, tensor<3xf32> {nn.updates = "mean"})
// CHECK: %[[A:.*]]:3 = call @step
// CHECK: %[[GA:.*]] = arith.extf %[[A]]#1
// CHECK: %[[WA:.*]] = arith.extf %[[A]]#1
// CHECK: %[[AA:.*]] = arith.mulf %[[WA]], %[[WA]] : tensor<3xf32>
// CHECK: %[[SA:.*]] = nn.reduce sum %[[AA]] dims = [0]
// CHECK: %[[B:.*]]:3 = call @step
// CHECK: %[[G:.*]] = arith.addf %[[GA]],
// CHECK: %[[SB:.*]] = nn.reduce sum
// CHECK: %[[SMALL:.*]] = arith.addf %[[SA]], %[[SB]] : tensor<f32>
// CHECK: %[[GG:.*]] = arith.mulf %[[G]], %[[G]]
// CHECK: %[[BIG:.*]] = nn.reduce sum %[[GG]] dims = [0]
// CHECK: %[[S2:.*]] = arith.mulf %[[SMALL]],
// CHECK: %[[B1:.*]] = arith.mulf %[[BIG]],
// CHECK: %[[NOISE:.*]] = arith.subf %[[S2]], %[[B1]]
// CHECK: %[[REST:.*]] = arith.subf %[[BIG]], %[[SMALL]]
// CHECK: %[[SIGNAL:.*]] = arith.mulf %[[REST]],
// CHECK: return %{{.*}}, %[[G]], %[[NOISE]], %[[SIGNAL]], %[[B]]#2
func.func private @step(tensor<4x3xf32>, tensor<3xf32>, tensor<3xbf16>) -> (tensor<f32>, tensor<3xbf16>, tensor<3xf32>)
func.func @main(%x: tensor<4x3xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
                %w: tensor<3xbf16> {nn.kind = "parameter", nn.name = "w"},
                %m: tensor<3xf32> {nn.kind = "buffer", nn.name = "mean"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<3xbf16> {nn.name = "grad.w"}, tensor<3xf32> {nn.updates = "mean"}) {
  %0:3 = call @step(%x, %m, %w) : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xbf16>) -> (tensor<f32>, tensor<3xbf16>, tensor<3xf32>)
  return %0#0, %0#1, %0#2 : tensor<f32>, tensor<3xbf16>, tensor<3xf32>
}
