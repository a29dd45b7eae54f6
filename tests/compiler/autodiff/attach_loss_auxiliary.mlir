// RUN: partita-opt %s --partita-attach-loss=loss=mse | FileCheck %s
// RUN: partita-opt %s "--partita-attach-loss=loss=mse microbatches=2" | FileCheck %s --check-prefix=HALF

// The auxiliary loss is added; of two microbatches, each one adds half of its own.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Z:[a-z0-9]*]]: tensor<f32> {nn.kind = "parameter"
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"})
// CHECK: %[[MEAN:.*]] = arith.divf
// CHECK: %[[LOSS:.*]] = arith.addf %[[MEAN]], %[[Z]] : tensor<f32>
// CHECK: return %[[LOSS]] : tensor<f32>
// HALF: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
// HALF: %[[PART:.*]] = arith.divf %{{.*}}, %[[TWO]] : tensor<f32>
// HALF: arith.addf %{{.*}}, %[[PART]] : tensor<f32>
func.func @main(%x: tensor<2x9xf32> {nn.kind = "input", nn.name = "x"}, %z: tensor<f32> {nn.kind = "parameter", nn.name = "z"})
    -> (tensor<2x9xf32> {nn.name = "y"}, tensor<f32> {nn.name = "auxiliary_loss"}) {
  return %x, %z : tensor<2x9xf32>, tensor<f32>
}
