// RUN: partita-opt %s --partita-append-optimizer=no-decay=b | FileCheck %s
// RUN: partita-opt %s "--partita-append-optimizer=optimizer=sgd momentum=0 keep-gradients" | FileCheck %s --check-prefix=SGD
// RUN: partita-opt %s --partita-append-optimizer=clip-norm=1 | FileCheck %s --check-prefix=CLIP

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[LR:[a-z0-9]*]]: tensor<f32> {nn.kind = "input", nn.name = "lr", nn.role = "learning_rate"}
// CHECK-SAME: %[[STEP:[a-z0-9]*]]: tensor<i64> {nn.kind = "input", nn.name = "step", nn.role = "step"}
// CHECK-SAME: %[[W:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "parameter", nn.name = "w"
// CHECK-SAME: %[[M:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "state", nn.name = "w/exp_avg", nn.source = #nn.init<"zeros", 0.000000e+00 : f64, 0>}
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<4xf32> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "w/exp_avg"}, tensor<4xf32> {nn.updates = "w/exp_avg_sq"}, tensor<4xf32> {nn.updates = "b"}
// CHECK: call @adamw_update(%[[W]], %{{.*}}, %[[M]]
// CHECK: call @adamw_update_0(

// SGD: -> (tensor<f32> {nn.name = "loss"}, tensor<4xf32> {nn.name = "grad.w"}, tensor<4xf32> {nn.name = "grad.b"}, tensor<4xf32> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "b"})

// CLIP: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "grad_norm"}, tensor<4xf32> {nn.updates = "w"}
func.func @main(%w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %b: tensor<4xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4xf32> {nn.name = "grad.w"}, tensor<4xf32> {nn.name = "grad.b"}) {
  %0 = arith.mulf %w, %b : tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1, %b, %w : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
