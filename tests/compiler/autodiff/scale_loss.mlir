// RUN: partita-opt %s --partita-scale-loss | FileCheck %s
// RUN: partita-opt %s --partita-scale-loss=initial=1024 --partita-differentiate --partita-append-optimizer --canonicalize --cse | FileCheck %s --check-prefix=STEP

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<f32> {nn.kind = "state", nn.name = "loss_scale/scale", nn.source = #nn.init<"zeros"
// CHECK-SAME: tensor<i64> {nn.kind = "state", nn.name = "loss_scale/good_steps"
// CHECK-SAME: tensor<i64> {nn.kind = "state", nn.name = "loss_scale/skipped"
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "loss_scale"}, tensor<f32> {nn.name = "scaled_loss"}, tensor<4xf32> {nn.updates = "mean"})
// CHECK: %[[L:.*]] = nn.reduce sum
// CHECK: %[[UNSET:.*]] = arith.cmpf oeq, %[[S]],
// CHECK: %[[SCALE:.*]] = arith.select %[[UNSET]], %{{.*}}, %[[S]]
// CHECK: %[[SCALED:.*]] = arith.mulf %[[L]], %[[SCALE]] : tensor<f32>
// CHECK: return %[[L]], %[[SCALE]], %[[SCALED]],

// STEP-LABEL: func.func @main(
// STEP-SAME: %[[MEAN:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "buffer"
// STEP-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "loss_scale"}, tensor<i64> {nn.name = "skipped"}, tensor<4xf32> {nn.updates = "mean"}, tensor<f32> {nn.updates = "loss_scale/scale"}, tensor<i64> {nn.updates = "loss_scale/good_steps"}, tensor<i64> {nn.updates = "loss_scale/skipped"}, tensor<4xf16> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "w/master"}
// The step is skipped unless the sum of squares of all gradients is finite.
// STEP: %[[FINITE:.*]] = arith.cmpf olt, %{{.*}}, %{{.*}} : tensor<f32>
// STEP: %[[EACH:.*]] = nn.broadcast %[[FINITE]] dims = [] : tensor<i1> -> tensor<4xi1>
// STEP: arith.select %[[EACH]], %{{.*}}, %[[MEAN]]
// STEP: call @adamw_update({{.*}}, %[[FINITE]])
func.func @main(%w: tensor<4xf16> {nn.kind = "parameter", nn.name = "w"},
                %mean: tensor<4xf32> {nn.kind = "buffer", nn.name = "mean"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4xf32> {nn.updates = "mean"}) {
  %0 = arith.extf %w : tensor<4xf16> to tensor<4xf32>
  %1 = arith.mulf %0, %0 : tensor<4xf32>
  %2 = nn.reduce sum %1 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %2, %0 : tensor<f32>, tensor<4xf32>
}
