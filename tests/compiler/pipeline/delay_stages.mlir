// RUN: partita-opt %s --partita-delay-stages --split-input-file | FileCheck %s
// RUN: partita-opt %s --partita-delay-stages=weights=newest --split-input-file | FileCheck %s --check-prefix=NEWEST

// Two stages, two microbatches: the second stage and all gradients run one
// microbatch late. The last microbatch therefore reads the previous step's
// activation, input and weights. Its gradient completes the sum for the update,
// which the first step skips.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<f32> {nn.kind = "input", nn.name = "t"}
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {nn.kind = "parameter", nn.name = "w"}
// CHECK-SAME: %[[STEPS:[a-z0-9]+]]: tensor<i64> {nn.kind = "state", nn.name = "delayed/1.steps", nn.source = #nn.init<"zeros"
// CHECK: %[[NOT_FIRST:.*]] = arith.cmpi sge, %[[STEPS]]
// CHECK: call @f0({{.*}}) {nn.microbatch = 0 : i64, nn.stage = 0 : i64}
// CHECK: call @f1(%[[A:[a-z0-9]+]], %[[OLD_T:[a-z0-9]+]], %[[OLD_W:[a-z0-9]+]]) {nn.microbatch = 1 : i64, nn.stage = 1 : i64}
// CHECK: %[[G1:.*]] = call @b1({{.*}}, %[[OLD_W]]) {nn.backward, nn.microbatch = 1 : i64, nn.stage = 1 : i64}
// CHECK: %[[SUM:.*]] = arith.addf %[[G0:[a-z0-9]+]], %[[G1]]
// CHECK: %[[NEW:.*]] = arith.addf %[[W]], %[[SUM]]
// CHECK: arith.select %{{.*}}, %[[NEW]], %[[W]]
// CHECK: call @f1({{.*}}, %[[T]], %[[W]]) {nn.microbatch = 0 : i64, nn.stage = 1 : i64}
// CHECK: call @b1({{.*}}, %[[W]]) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 1 : i64}
// CHECK: call @f0({{.*}}) {nn.microbatch = 1 : i64, nn.stage = 0 : i64}

// In the second stage, microbatch 0 runs after the update and reads the new weights.
// NEWEST-LABEL: func.func @main(
// NEWEST-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {nn.kind = "parameter", nn.name = "w"}
// NEWEST: call @f1(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %[[W]]) {nn.microbatch = 1 : i64, nn.stage = 1 : i64}
// NEWEST: %[[NEW:.*]] = arith.select
// NEWEST: call @f1({{.*}}, %[[NEW]]) {nn.microbatch = 0 : i64, nn.stage = 1 : i64}
func.func private @f0(tensor<4xf32>) -> tensor<4xf32>
func.func private @f1(tensor<4xf32>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
func.func private @b1(tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<2x4xf32> {nn.kind = "input", nn.name = "x"}, %t: tensor<f32> {nn.kind = "input", nn.name = "t"},
                %w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w"}) -> (tensor<4xf32> {nn.updates = "w"}) {
  %0 = nn.slice %x starts = [0, 0] strides = [1, 1] : tensor<2x4xf32> -> tensor<1x4xf32>
  %x0 = nn.reshape %0 : tensor<1x4xf32> -> tensor<4xf32>
  %1 = nn.slice %x starts = [1, 0] strides = [1, 1] : tensor<2x4xf32> -> tensor<1x4xf32>
  %x1 = nn.reshape %1 : tensor<1x4xf32> -> tensor<4xf32>
  %a0 = call @f0(%x0) {nn.microbatch = 0 : i64, nn.stage = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %y0 = call @f1(%a0, %t, %w) {nn.microbatch = 0 : i64, nn.stage = 1 : i64} : (tensor<4xf32>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %g0 = call @b1(%a0, %y0, %w) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a1 = call @f0(%x1) {nn.microbatch = 1 : i64, nn.stage = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %y1 = call @f1(%a1, %t, %w) {nn.microbatch = 1 : i64, nn.stage = 1 : i64} : (tensor<4xf32>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %g1 = call @b1(%a1, %y1, %w) {nn.backward, nn.microbatch = 1 : i64, nn.stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = arith.addf %g0, %g1 : tensor<4xf32>
  %n = arith.addf %w, %g : tensor<4xf32>
  return %n : tensor<4xf32>
}

// -----

// With one stage, nothing is delayed.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: delayed
// CHECK: return
func.func private @f0(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}) -> tensor<4xf32> {
  %0 = call @f0(%x) {nn.stage = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
