// RUN: partita-opt %s --partita-append-optimizer=optimizer=0/1-adam | FileCheck %s
// RUN: partita-opt %s "--partita-append-optimizer=optimizer=0/1-adam zero-one-step=local" | FileCheck %s --check-prefix=LOCAL
// RUN: partita-opt %s "--partita-append-optimizer=optimizer=0/1-adam zero-one-step=variance" | FileCheck %s --check-prefix=VARIANCE

// The model reads the device's own copy of the parameter. Its sum is exchanged, and then begins anew.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "parameter", nn.name = "w"
// CHECK-SAME: nn.name = "zero_one_adam/variance_steps"
// CHECK-SAME: nn.name = "zero_one_adam/rate_sum"
// CHECK-SAME: nn.name = "zero_one_adam/corrected_rate_sum"
// CHECK-SAME: %[[M:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "state", nn.name = "w/local_exp_avg"
// CHECK-SAME: %[[U:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "state", nn.name = "w/local_sum"
// CHECK-SAME: %[[V:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "state", nn.name = "w/exp_avg_sq"
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.updates = "zero_one_adam/rate_sum"}, tensor<f32> {nn.updates = "zero_one_adam/corrected_rate_sum"}, tensor<4xf32> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "w/local_exp_avg"}, tensor<4xf32> {nn.updates = "w/local_sum"})
// CHECK: %[[X:.*]] = call @zero_one_own_parameter(%[[W]], %[[U]], %[[V]],
// CHECK: arith.mulf %[[X]], %[[X]]
// CHECK: %[[STEP:.*]]:2 = call @zero_one_local_step(%[[M]], %{{.*}}, %[[U]], {{.*}}) {nn.own_gradient = "w"}
// CHECK: call @zero_one_exchange_step(%[[W]], %[[STEP]]#1, %[[V]], {{.*}}) {nn.one_bit_mean = "w"}

// The parameter of the last exchange stays.
// LOCAL-LABEL: func.func @main(
// LOCAL-SAME: %[[W:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "parameter"
// LOCAL-SAME: tensor<4xf32> {nn.updates = "w/local_exp_avg"}, tensor<4xf32> {nn.updates = "w/local_sum"}, tensor<4xf32> {nn.updates = "w"})
// LOCAL-NOT: zero_one_exchange_step
// LOCAL: return {{.*}}, %[[W]] : tensor<f32>

// VARIANCE-LABEL: func.func @main(
// VARIANCE-SAME: nn.name = "w/local_exp_avg"
// VARIANCE-SAME: tensor<i64> {nn.updates = "zero_one_adam/variance_steps"}, tensor<4xf32> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "w/local_exp_avg"}, tensor<4xf32> {nn.updates = "w/exp_avg_sq"})
// VARIANCE-NOT: zero_one
func.func @main(%w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4xf32> {nn.name = "grad.w"}) {
  %0 = arith.mulf %w, %w : tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  %2 = arith.addf %w, %w : tensor<4xf32>
  return %1, %2 : tensor<f32>, tensor<4xf32>
}
