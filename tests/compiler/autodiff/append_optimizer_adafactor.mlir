// RUN: partita-opt %s --partita-append-optimizer=optimizer=adafactor --split-input-file | FileCheck %s

// A matrix has a state per row and a state per column, of the shape in the
// model's file; a vector has a state per element. Dimensions of size 1 do not count.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{[a-z0-9]*}}: tensor<4xf32> {nn.kind = "state", nn.name = "w/exp_avg_sq_row", nn.source = #nn.init<"zeros", 0.000000e+00 : f64, 0>, nn.view_of = tensor<4xf32>}
// CHECK-SAME: %{{[a-z0-9]*}}: tensor<2x3xf32> {nn.kind = "state", nn.name = "w/exp_avg_sq_col", {{.*}}nn.view_of = tensor<6xf32>}
// CHECK-SAME: %{{[a-z0-9]*}}: tensor<6x1xf32> {nn.kind = "state", nn.name = "b/exp_avg_sq"
// CHECK: call @adafactor_update(%{{.*}}) : (tensor<4x2x3xf32>, tensor<4x2x3xf32>, tensor<4xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x2x3xf32>, tensor<4xf32>, tensor<2x3xf32>)
// CHECK-LABEL: func.func private @adafactor_update(
// CHECK: nn.reduce sum %{{.*}} dims = [1, 2] : tensor<4x2x3xf32> -> tensor<4xf32>
// CHECK: nn.reduce sum %{{.*}} dims = [0] : tensor<4x2x3xf32> -> tensor<2x3xf32>
func.func @main(%w: tensor<4x2x3xf32> {nn.kind = "parameter", nn.name = "w", nn.view_of = tensor<4x6xf32>, nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %b: tensor<6x1xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4x2x3xf32> {nn.name = "grad.w"}, tensor<6x1xf32> {nn.name = "grad.b"}) {
  %0 = nn.reduce sum %w dims = [0, 1, 2] : tensor<4x2x3xf32> -> tensor<f32>
  return %0, %w, %b : tensor<f32>, tensor<4x2x3xf32>, tensor<6x1xf32>
}

// -----

// States keep the parameter's dimensions of size 1, viewed or not, because a
// checkpoint must be readable under every plan.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<96x1x1xf32> {nn.kind = "state", nn.name = "k/exp_avg_sq_row"
// CHECK-SAME: tensor<32x1x1xf32> {nn.kind = "state", nn.name = "k/exp_avg_sq_col"
func.func @main(%k: tensor<96x32x1x1xf32> {nn.kind = "parameter", nn.name = "k", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<f32> {nn.name = "loss"}, tensor<96x32x1x1xf32> {nn.name = "grad.k"}) {
  %0 = nn.reduce sum %k dims = [0, 1, 2, 3] : tensor<96x32x1x1xf32> -> tensor<f32>
  return %0, %k : tensor<f32>, tensor<96x32x1x1xf32>
}
