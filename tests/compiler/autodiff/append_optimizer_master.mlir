// RUN: partita-opt %s --partita-append-optimizer | FileCheck %s

// The update of a 16-bit parameter is applied to its f32 copy, then rounded.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W:[a-z0-9]*]]: tensor<4xbf16> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.file<"w", 0, 16, f32>}
// CHECK-SAME: %[[C:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "state", nn.name = "w/master", nn.source = #nn.file<"w", 0, 16, f32>}
// CHECK-SAME: %[[M:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "state", nn.name = "w/exp_avg", nn.source = #nn.init<"zeros"
// CHECK-SAME: %[[V:[a-z0-9]*]]: tensor<4xf32> {nn.kind = "state", nn.name = "w/exp_avg_sq", nn.source = #nn.init<"zeros"
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<4xbf16> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "w/master"}, tensor<4xf32> {nn.updates = "w/exp_avg"}, tensor<4xf32> {nn.updates = "w/exp_avg_sq"})
// CHECK: call @adamw_update(%[[C]], %[[W]], %[[M]], %[[V]]
func.func @main(%w: tensor<4xbf16> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.file<"w", 0, 16, f32>})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4xbf16> {nn.name = "grad.w"}) {
  %0 = arith.extf %w : tensor<4xbf16> to tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1, %w : tensor<f32>, tensor<4xbf16>
}

// CHECK-LABEL: func.func private @adamw_update(
// CHECK-SAME: %[[P:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<4xbf16>
// CHECK: arith.extf %[[G]] : tensor<4xbf16> to tensor<4xf32>
// CHECK: %[[NEW:.*]] = arith.subf %[[P]],
// CHECK: %[[N:.*]] = arith.truncf %[[NEW]] : tensor<4xf32> to tensor<4xbf16>
// CHECK: return %[[N]], %[[NEW]],
