// RUN: partita-opt %s "--partita-append-optimizer=clip-norm=1" | FileCheck %s
// RUN: partita-opt %s "--partita-append-optimizer=optimizer=lamb" | FileCheck %s --check-prefix=LAMB

// A model of f64 trains in f64; the learning rate and the norm are f32. Both
// parameters count in the norm.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{.*}}: tensor<f32> {nn.kind = "input", nn.name = "lr"
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "grad_norm"}, tensor<4xf64> {nn.updates = "w"}
// CHECK: arith.truncf %{{.*}} : tensor<f64> to tensor<f32>
// CHECK-LABEL: func.func private @adamw_update
// CHECK: arith.extf %{{.*}} : tensor<f32> to tensor<f64>
// LAMB: func.func private @lamb_update
func.func @main(%w: tensor<4xf64> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %b: tensor<4xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4xf64> {nn.name = "grad.w"}, tensor<4xf32> {nn.name = "grad.b"}) {
  %0 = arith.truncf %w : tensor<4xf64> to tensor<4xf32>
  %1 = arith.mulf %0, %b : tensor<4xf32>
  %2 = nn.reduce sum %1 dims = [0] : tensor<4xf32> -> tensor<f32>
  %3 = arith.extf %b : tensor<4xf32> to tensor<4xf64>
  return %2, %3, %0 : tensor<f32>, tensor<4xf64>, tensor<4xf32>
}
