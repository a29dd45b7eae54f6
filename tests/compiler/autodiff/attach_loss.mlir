// RUN: partita-opt %s --partita-attach-loss --split-input-file | FileCheck %s

// The input `targets` comes after the other inputs. Positions with target -100
// are not counted.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<2x5x9xf32> {nn.kind = "input", nn.name = "x"}, %[[T:.*]]: tensor<2x5xi64> {nn.kind = "input", nn.name = "targets"}, %[[W:.*]]: tensor<2x5x9xf32>
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"})
// CHECK: %[[L:.*]] = nn.cross_entropy %{{.*}}, %[[T]]
// CHECK: arith.cmpi ne, %[[T]]
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[L]] dims = [0, 1]
// CHECK: %[[LOSS:.*]] = arith.divf %[[SUM]]
// CHECK: return %[[LOSS]] : tensor<f32>
func.func @main(%x: tensor<2x5x9xf32> {nn.kind = "input", nn.name = "x"}, %w: tensor<2x5x9xf32> {nn.kind = "parameter", nn.name = "w"})
    -> (tensor<2x5x9xf32> {nn.name = "y"}, tensor<2x5x9xf32> {nn.name = "z"}) {
  %0 = arith.mulf %x, %w : tensor<2x5x9xf32>
  return %0, %x : tensor<2x5x9xf32>, tensor<2x5x9xf32>
}

// -----

// Running statistics of a batch norm become updates of their buffers.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<3xf32> {nn.updates = "mean"}, tensor<3xf32> {nn.updates = "variance"})
// CHECK: %{{.*}}, %[[S:.*]]:2 = nn.batch_norm
// CHECK: return %{{.*}}, %[[S]]#0, %[[S]]#1
func.func @main(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"}, %g: tensor<3xf32> {nn.kind = "parameter", nn.name = "g"},
                %m: tensor<3xf32> {nn.kind = "buffer", nn.name = "mean"}, %v: tensor<3xf32> {nn.kind = "buffer", nn.name = "variance"})
    -> tensor<4x3xf32> {
  %y, %s:2 = nn.batch_norm %x, %g, %g, %m, %v feature = 1 epsilon = 1.0e-5 training
      : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y : tensor<4x3xf32>
}

// -----

// A layer returns its running statistics; each call updates different buffers.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<3xf32> {nn.updates = "0.mean"}, tensor<3xf32> {nn.updates = "0.variance"}, tensor<3xf32> {nn.updates = "1.mean"}, tensor<3xf32> {nn.updates = "1.variance"})
// CHECK: %[[A:.*]]:3 = call @layer
// CHECK: %[[B:.*]]:3 = call @layer(%[[A]]#0
// CHECK: return %{{.*}}, %[[A]]#1, %[[A]]#2, %[[B]]#1, %[[B]]#2
// CHECK: func.func private @layer
// CHECK: %[[Y:.*]], %[[S:.*]]:2 = nn.batch_norm
// CHECK: return %[[Y]], %[[S]]#0, %[[S]]#1
func.func @main(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"}, %g: tensor<3xf32> {nn.kind = "parameter", nn.name = "g"},
                %m0: tensor<3xf32> {nn.kind = "buffer", nn.name = "0.mean"}, %v0: tensor<3xf32> {nn.kind = "buffer", nn.name = "0.variance"},
                %m1: tensor<3xf32> {nn.kind = "buffer", nn.name = "1.mean"}, %v1: tensor<3xf32> {nn.kind = "buffer", nn.name = "1.variance"})
    -> tensor<4x3xf32> {
  %0 = call @layer(%x, %g, %m0, %v0) : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %1 = call @layer(%0, %g, %m1, %v1) : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}
func.func private @layer(%x: tensor<4x3xf32>, %g: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>) -> tensor<4x3xf32> {
  %y, %s:2 = nn.batch_norm %x, %g, %g, %m, %v feature = 1 epsilon = 1.0e-5 training
      : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y : tensor<4x3xf32>
}
