// RUN: partita-opt %s --split-input-file --partita-attach-loss=loss=mse | FileCheck %s
// RUN: partita-opt %s --split-input-file "--partita-attach-loss=loss=mse microbatches=2" | FileCheck %s

// The distance from a teacher is added to the loss of the targets, which has a weight.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: nn.name = "targets"
// CHECK-SAME: %[[D:[a-z0-9]*]]: tensor<f32> {nn.kind = "parameter", nn.name = "d"}
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"})
// CHECK: %[[HALF:.*]] = arith.constant dense<5.000000e-01> : tensor<f32>
// CHECK: %[[MEAN:.*]] = arith.divf
// CHECK: %[[PART:.*]] = arith.mulf %[[MEAN]], %[[HALF]] : tensor<f32>
// CHECK: %[[LOSS:.*]] = arith.addf %[[PART]], %[[D]] : tensor<f32>
// CHECK: return %[[LOSS]] : tensor<f32>
func.func @main(%x: tensor<2x9xf32> {nn.kind = "input", nn.name = "x"}, %d: tensor<f32> {nn.kind = "parameter", nn.name = "d"})
    -> (tensor<2x9xf32> {nn.name = "y"}, tensor<f32> {nn.name = "distillation_loss"}, tensor<f32> {nn.name = "target_loss_weight"}) {
  %half = arith.constant dense<0.5> : tensor<f32>
  return %x, %d, %half : tensor<2x9xf32>, tensor<f32>, tensor<f32>
}

// -----

// Without a weight there are no targets.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.name = "targets"
// CHECK-SAME: %[[D:[a-z0-9]*]]: tensor<f32> {nn.kind = "parameter", nn.name = "d"}
// CHECK: return %[[D]] : tensor<f32>
func.func @main(%x: tensor<2x9xf32> {nn.kind = "input", nn.name = "x"}, %d: tensor<f32> {nn.kind = "parameter", nn.name = "d"})
    -> (tensor<2x9xf32> {nn.name = "y"}, tensor<f32> {nn.name = "distillation_loss"}, tensor<f32> {nn.name = "target_loss_weight"}) {
  %none = arith.constant dense<0.0> : tensor<f32>
  return %x, %d, %none : tensor<2x9xf32>, tensor<f32>, tensor<f32>
}
