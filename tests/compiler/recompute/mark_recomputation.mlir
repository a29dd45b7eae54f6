// RUN: partita-opt %s "--partita-mark-recomputation=rules=none;full@h.{0,1};selective@h.1.*" | FileCheck %s
// RUN: partita-opt %s "--partita-mark-recomputation=rules=full" | FileCheck %s --check-prefix=WHOLE
// RUN: partita-opt %s "--partita-mark-recomputation=rules=full@h.0" --partita-differentiate=recompute=none | FileCheck %s --check-prefix=GRADIENTS

// A later rule takes precedence. Each policy gets a separate copy of the function.
// CHECK: call @layer(%{{.*}}) {recompute = "full"}
// CHECK: call @[[SELECTIVE:.*]](%{{.*}}) {recompute = "selective"}
// CHECK: call @[[NONE:.*]](%{{.*}}) {recompute = "none"}
// CHECK: nn.reduce sum {{.*}}recompute = "none"
// CHECK: func.func private @layer(
// CHECK: math.tanh {{.*}} {recompute = "full"}
// CHECK-DAG: func.func private @[[NONE]](
// CHECK-DAG: func.func private @[[SELECTIVE]](

// WHOLE-COUNT-3: call @layer(%{{.*}}) {recompute = "full"}

// The first layer saves nothing, the others save computed values. No mark remains.
// GRADIENTS: call @[[FULL:layer_forward.*]](%arg0, %arg1) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
// GRADIENTS: %[[B:.*]]:2 = call @[[KEPT:layer.*_forward.*]](%{{.*}}, %arg2)
// GRADIENTS: call @[[KEPT]](%[[B]]#0, %arg3)
// GRADIENTS-NOT: recompute =
func.func @main(%x: tensor<2x4xf32> {nn.kind = "input", nn.name = "x"},
                %w0: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "h.0.up.weight"},
                %w1: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "h.1.up.weight"},
                %w2: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "h.2.up.weight"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = call @layer(%x, %w0) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = call @layer(%0, %w1) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %2 = call @layer(%1, %w2) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = nn.reduce sum %2 dims = [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %3 : tensor<f32>
}

func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %1 = math.tanh %0 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
