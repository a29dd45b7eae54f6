// RUN: partita-opt %s "--partita-append-optimizer=optimizer=sgd keep-zeros=*" | FileCheck %s
// RUN: partita-opt %s "--partita-append-optimizer=optimizer=sgd keep-zeros=*;!w clip-norm=1" | FileCheck %s --check-prefix=SOME

// Zeros of the matrix stay; biases are free.
// CHECK-LABEL: func.func private @sgd_update(
// CHECK-SAME: %[[W:[a-z0-9]*]]: tensor<2x4xf32>, %[[G:[a-z0-9]*]]: tensor<2x4xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<2x4xf32>
// CHECK: %[[IS_ZERO:.*]] = arith.cmpf oeq, %[[W]], %{{.*}} : tensor<2x4xf32>
// CHECK: arith.select %[[IS_ZERO]], %{{.*}}, %[[G]]
// CHECK: %[[NEW:.*]] = arith.subf
// CHECK: %[[LAST:.*]] = arith.select %{{.*}}, %{{.*}}, %[[NEW]]
// CHECK: return %[[LAST]]
// CHECK-LABEL: func.func private @sgd_update_0(
// CHECK-NOT: arith.select
// CHECK: return

// An excluded matrix is free, too.
// SOME-LABEL: func.func private @sgd_update(
// SOME-NOT: arith.select
// SOME-LABEL: func.func private @sgd_update_0(
// SOME-NOT: arith.select
// SOME-LABEL: func.func private @sgd_update_1(
// SOME: arith.select
func.func @main(%w: tensor<2x4xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %b: tensor<4xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %v: tensor<3x4xf32> {nn.kind = "parameter", nn.name = "v", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<f32> {nn.name = "loss"}, tensor<2x4xf32> {nn.name = "grad.w"}, tensor<4xf32> {nn.name = "grad.b"},
        tensor<3x4xf32> {nn.name = "grad.v"}) {
  %1 = nn.reduce sum %b dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1, %w, %b, %v : tensor<f32>, tensor<2x4xf32>, tensor<4xf32>, tensor<3x4xf32>
}
