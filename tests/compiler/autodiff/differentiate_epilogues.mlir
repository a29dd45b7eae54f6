// RUN: partita-opt %s --partita-differentiate | FileCheck %s
// RUN: partita-opt %s --partita-differentiate=recompute=full | FileCheck %s --check-prefix=FULL

// A product is saved with its bias: a library writes the sum, and nothing else reads the product.
// CHECK-LABEL: func.func private @layer_forward
// CHECK: %[[D:.*]] = nn.dot_general
// CHECK: %[[S:.*]] = arith.addf %[[D]]
// CHECK: return %{{.*}}, %[[S]]
// CHECK-LABEL: func.func private @layer_backward
// CHECK-NOT: contract = [1] x [0]
// CHECK-NOT: arith.addf %{{.*}}, %{{.*}} : tensor<2x4xf32>
// CHECK: return

// FULL-LABEL: func.func private @layer_backward
// FULL: nn.dot_general {{.*}} contract = [1] x [0]
func.func @main(%x: tensor<2x4xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "w"},
                %b: tensor<4xf32> {nn.kind = "parameter", nn.name = "b"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = call @layer(%x, %w, %b) : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %2 = arith.addf %0, %1 : tensor<2x4xf32>
  %3 = math.tanh %2 : tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}
