// RUN: partita-opt %s --partita-differentiate | FileCheck %s
// RUN: partita-opt %s --partita-differentiate=recompute=none | FileCheck %s --check-prefix=NONE
// RUN: partita-opt %s --partita-differentiate=recompute=full | FileCheck %s --check-prefix=FULL
// RUN: partita-opt %s --partita-differentiate=train=w0 | FileCheck %s --check-prefix=FIRST

// Both calls of the layer share one forward and one backward function. The
// operations after the last call are outlined into a function too.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (tensor<f32> {nn.name = "loss"}, tensor<4x4xf32> {nn.name = "grad.w0"}, tensor<4x4xf32> {nn.name = "grad.w1"})
// CHECK: %[[A:.*]]:2 = call @layer_forward_0(%arg0, %arg1)
// CHECK: %[[B:.*]]:2 = call @layer_forward(%[[A]]#0, %arg2)
// CHECK: %[[LOSS:.*]] = call @segment_forward(%[[B]]#0)
// CHECK: %[[DB:.*]] = call @segment_backward
// CHECK: %[[D1:.*]]:2 = call @layer_backward(%[[A]]#0, %arg2, %[[B]]#1, %[[DB]])
// The input needs no gradient, so the first layer has a separate backward function.
// CHECK: %[[D0:.*]] = call @layer_backward_{{.*}}(%arg0, %[[A]]#1, %[[D1]]#0)
// CHECK: return %[[LOSS]], %[[D0]], %[[D1]]#1

// By default the tanh is recomputed and the product is saved.
// CHECK-LABEL: func.func private @layer_backward(
// CHECK: math.tanh
// CHECK-NOT: nn.dot_general {{.*}}contract = [1] x [0]
// CHECK: return

// NONE-LABEL: func.func private @layer_backward(
// NONE-NOT: math.tanh
// NONE: return

// recompute=full saves only the arguments.
// FULL: func.func private @layer_forward(%{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<4x4xf32>) -> tensor<2x4xf32>
// FULL-LABEL: func.func private @layer_backward(%{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<4x4xf32>, %{{.*}}: tensor<2x4xf32>)
// FULL: nn.dot_general {{.*}}contract = [1] x [0]
// FULL: math.tanh

// FIRST: func.func @main{{.*}} -> (tensor<f32> {nn.name = "loss"}, tensor<4x4xf32> {nn.name = "grad.w0"}) {
func.func @main(%x: tensor<2x4xf32> {nn.kind = "input", nn.name = "x"},
                %w0: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "w0"},
                %w1: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "w1"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = call @layer(%x, %w0) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = call @layer(%0, %w1) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %2 = nn.reduce sum %1 dims = [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %1 = math.tanh %0 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
