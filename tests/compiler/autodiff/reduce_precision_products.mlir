// RUN: partita-opt %s --partita-reduce-precision --canonicalize --cse | FileCheck %s

// A product is rounded after its bias and residual, as libraries do it, and all its users read the rounded value. What @main
// returns stays unrounded.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = call @layer
// CHECK: %[[D:.*]] = nn.dot_general %[[Y]]
// CHECK: %[[D32:.*]] = arith.extf %[[D]]
// CHECK: %[[S:.*]] = arith.addf %[[D32]]
// CHECK-NEXT: return %[[S]]
func.func @main(%x: tensor<2x8xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<8x8xf32> {nn.kind = "parameter", nn.name = "w"},
                %b: tensor<8xf32> {nn.kind = "parameter", nn.name = "b"}) -> tensor<2x8xf32> {
  %0 = call @layer(%x, %w, %b) : (tensor<2x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %1 = nn.dot_general %0, %w contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %2 = nn.broadcast %b dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
  %3 = arith.addf %1, %2 : tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func private @layer(
// CHECK: %[[D:.*]] = nn.dot_general {{.*}} -> tensor<2x8xbf16>
// CHECK: %[[D32:.*]] = arith.extf %[[D]]
// CHECK: %[[S:.*]] = arith.addf %[[D32]], %{{.*}} : tensor<2x8xf32>
// CHECK: %[[R:.*]] = arith.addf %{{.*}}, %[[S]] : tensor<2x8xf32>
// CHECK: %[[R16:.*]] = arith.truncf %[[R]]
// CHECK: %[[R32:.*]] = arith.extf %[[R16]]
// CHECK: math.tanh %[[R32]]
func.func private @layer(%x: tensor<2x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
  %2 = arith.addf %0, %1 : tensor<2x8xf32>
  %3 = arith.addf %x, %2 : tensor<2x8xf32>
  %4 = math.tanh %3 : tensor<2x8xf32>
  return %4 : tensor<2x8xf32>
}
