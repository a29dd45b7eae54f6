// RUN: partita-opt %s --partita-split-backward --split-input-file | FileCheck %s

// The first half of a layer computes the gradient for the previous layer, the
// second the weight gradients. The first passes %dh to the second, which is not
// recomputed because it is no larger than its operand %dy. No call waits for the
// first layer's gradients, and the loss has no weights: both calls stay whole.
// CHECK-LABEL: func.func @main(
// CHECK: %[[L:.*]] = call @loss_backward({{.*}}) {nn.backward = "input", nn.microbatch = 3 : i64, nn.stage = 1 : i64}
// CHECK: %[[A:.*]]:2 = call @layer_backward_input(%[[L]], %{{.*}}, %{{.*}}) {nn.backward = "input", nn.microbatch = 3 : i64, nn.stage = 1 : i64}
// CHECK: %[[B:.*]] = call @layer_backward_weight(%[[X:.*]], %[[A]]#1) {nn.backward = "weight", nn.microbatch = 3 : i64, nn.stage = 1 : i64}
// CHECK: %[[C:.*]]:2 = call @first_backward(%{{.*}}, %[[A]]#0) {nn.backward = "weight", nn.microbatch = 3 : i64, nn.stage = 0 : i64}
// CHECK: return %[[B]], %[[C]]#1
// CHECK-NOT: @layer_backward(
// CHECK-LABEL: func.func private @layer_backward_input(
// CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<4x6xf32>, %[[W:[a-z0-9]+]]: tensor<5x6xf32>, %[[H:[a-z0-9]+]]: tensor<4x6xf32>) -> (tensor<4x5xf32>, tensor<4x6xf32>)
// CHECK: %[[DH:.*]] = arith.mulf %[[DY]], %[[H]]
// CHECK: %[[DX:.*]] = nn.dot_general %[[DH]], %[[W]]
// CHECK: return %[[DX]], %[[DH]]
// CHECK-LABEL: func.func private @layer_backward_weight(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x5xf32>, %[[DH:[a-z0-9]+]]: tensor<4x6xf32>) -> tensor<5x6xf32>
// CHECK-NEXT: %[[DW:.*]] = nn.dot_general %[[X]], %[[DH]]
// CHECK-NEXT: return %[[DW]]
func.func private @loss_backward(%y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  return %y : tensor<4x6xf32>
}
func.func private @layer_backward(%x: tensor<4x5xf32>, %dy: tensor<4x6xf32>, %w: tensor<5x6xf32>, %h: tensor<4x6xf32>) -> (tensor<4x5xf32>, tensor<5x6xf32>) {
  %dh = arith.mulf %dy, %h : tensor<4x6xf32>
  %dx = nn.dot_general %dh, %w contract = [1] x [1] : tensor<4x6xf32>, tensor<5x6xf32> -> tensor<4x5xf32>
  %dw = nn.dot_general %x, %dh contract = [0] x [0] : tensor<4x5xf32>, tensor<4x6xf32> -> tensor<5x6xf32>
  return %dx, %dw : tensor<4x5xf32>, tensor<5x6xf32>
}
func.func private @first_backward(%ids: tensor<4x5xf32>, %dy: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<5x5xf32>) {
  %dw = nn.dot_general %ids, %dy contract = [0] x [0] : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<5x5xf32>
  return %dy, %dw : tensor<4x5xf32>, tensor<5x5xf32>
}
func.func @main(%x: tensor<4x5xf32>, %y: tensor<4x6xf32>, %w: tensor<5x6xf32>) -> (tensor<5x6xf32>, tensor<5x5xf32>) {
  %x1 = arith.addf %x, %x : tensor<4x5xf32>
  %h = arith.addf %y, %y : tensor<4x6xf32>
  %dy = call @loss_backward(%h) {nn.backward, nn.microbatch = 3 : i64, nn.stage = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %0:2 = call @layer_backward(%x1, %dy, %w, %h) {nn.backward, nn.microbatch = 3 : i64, nn.stage = 1 : i64} : (tensor<4x5xf32>, tensor<4x6xf32>, tensor<5x6xf32>, tensor<4x6xf32>) -> (tensor<4x5xf32>, tensor<5x6xf32>)
  %1:2 = call @first_backward(%x1, %0#0) {nn.backward, nn.microbatch = 3 : i64, nn.stage = 0 : i64} : (tensor<4x5xf32>, tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<5x5xf32>)
  return %0#1, %1#1 : tensor<5x6xf32>, tensor<5x5xf32>
}

// -----

// The second half widens %dy again, because keeping the 16-bit value takes half
// the bytes of the f32 value.
// CHECK-LABEL: func.func private @layer_backward_input(
// CHECK: arith.extf
// CHECK: return %{{.*}} : tensor<4x5xf32>
// CHECK-LABEL: func.func private @layer_backward_weight(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x5xf32>, %[[DY:[a-z0-9]+]]: tensor<4x6xbf16>) -> tensor<5x6xf32>
// CHECK: %[[WIDE:.*]] = arith.extf %[[DY]]
// CHECK: nn.dot_general %[[X]], %[[WIDE]]
func.func private @layer_backward(%x: tensor<4x5xf32>, %dy: tensor<4x6xbf16>, %w: tensor<5x6xf32>) -> (tensor<4x5xf32>, tensor<5x6xf32>) {
  %0 = arith.extf %dy : tensor<4x6xbf16> to tensor<4x6xf32>
  %dx = nn.dot_general %0, %w contract = [1] x [1] : tensor<4x6xf32>, tensor<5x6xf32> -> tensor<4x5xf32>
  %dw = nn.dot_general %x, %0 contract = [0] x [0] : tensor<4x5xf32>, tensor<4x6xf32> -> tensor<5x6xf32>
  return %dx, %dw : tensor<4x5xf32>, tensor<5x6xf32>
}
func.func private @first_backward(tensor<4x5xf32>) -> tensor<5xf32>
func.func @main(%x: tensor<4x5xf32>, %y: tensor<4x6xbf16>, %w: tensor<5x6xf32>) -> (tensor<5x6xf32>, tensor<5xf32>) {
  %x1 = arith.addf %x, %x : tensor<4x5xf32>
  %dy = arith.addf %y, %y : tensor<4x6xbf16>
  %0:2 = call @layer_backward(%x1, %dy, %w) {nn.backward} : (tensor<4x5xf32>, tensor<4x6xbf16>, tensor<5x6xf32>) -> (tensor<4x5xf32>, tensor<5x6xf32>)
  %1 = call @first_backward(%0#0) {nn.backward = "weight"} : (tensor<4x5xf32>) -> tensor<5xf32>
  return %0#1, %1 : tensor<5x6xf32>, tensor<5xf32>
}

// -----

// A sum over rows stays in the first half if the second would need all rows for
// it alone (%s). It moves to the second if the rows are passed anyway (%b).
// CHECK-LABEL: func.func private @layer_backward_input(
// CHECK-SAME: -> (tensor<4x5xf32>, tensor<5xf32>)
// CHECK: nn.reduce
// CHECK-NOT: nn.reduce
// CHECK: return
// CHECK-LABEL: func.func private @layer_backward_weight(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<4x5xf32>, %{{[a-z0-9]+}}: tensor<4x6xf32>) -> (tensor<5x6xf32>, tensor<6xf32>)
// CHECK: nn.reduce
func.func private @layer_backward(%x: tensor<4x5xf32>, %dy: tensor<4x6xf32>, %w: tensor<5x6xf32>) -> (tensor<4x5xf32>, tensor<5x6xf32>, tensor<5xf32>, tensor<6xf32>) {
  %dx = nn.dot_general %dy, %w contract = [1] x [1] : tensor<4x6xf32>, tensor<5x6xf32> -> tensor<4x5xf32>
  %dw = nn.dot_general %x, %dy contract = [0] x [0] : tensor<4x5xf32>, tensor<4x6xf32> -> tensor<5x6xf32>
  %p = arith.mulf %dx, %x : tensor<4x5xf32>
  %s = nn.reduce sum %p dims = [0] : tensor<4x5xf32> -> tensor<5xf32>
  %b = nn.reduce sum %dy dims = [0] : tensor<4x6xf32> -> tensor<6xf32>
  return %dx, %dw, %s, %b : tensor<4x5xf32>, tensor<5x6xf32>, tensor<5xf32>, tensor<6xf32>
}
func.func private @first_backward(tensor<4x5xf32>) -> tensor<5xf32>
func.func @main(%x: tensor<4x5xf32>, %y: tensor<4x6xf32>, %w: tensor<5x6xf32>) -> (tensor<5x6xf32>, tensor<5xf32>, tensor<6xf32>, tensor<5xf32>) {
  %x1 = arith.addf %x, %x : tensor<4x5xf32>
  %dy = arith.addf %y, %y : tensor<4x6xf32>
  %0:4 = call @layer_backward(%x1, %dy, %w) {nn.backward} : (tensor<4x5xf32>, tensor<4x6xf32>, tensor<5x6xf32>) -> (tensor<4x5xf32>, tensor<5x6xf32>, tensor<5xf32>, tensor<6xf32>)
  %1 = call @first_backward(%0#0) {nn.backward = "weight"} : (tensor<4x5xf32>) -> tensor<5xf32>
  return %0#1, %0#2, %0#3, %1 : tensor<5x6xf32>, tensor<5xf32>, tensor<6xf32>, tensor<5xf32>
}
