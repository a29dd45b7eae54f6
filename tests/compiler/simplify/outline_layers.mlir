// RUN: partita-opt %s --split-input-file --partita-outline-layers=min-operations=2 | FileCheck %s

// Layers with different weights share a function. The first and the last operation stay in @main.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[W0:.*]]: tensor<4x4xf32>, %[[B0:.*]]: tensor<4xf32>, %[[W1:.*]]: tensor<4x4xf32>, %[[B1:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]]
// CHECK-NEXT: %[[L0:.*]] = call @layer(%[[E]], %[[W0]], %[[B0]])
// CHECK-NEXT: %[[L1:.*]] = call @layer(%[[L0]], %[[W1]], %[[B1]])
// CHECK-NEXT: %[[S:.*]] = math.sin %[[L1]]
// CHECK-NEXT: return %[[S]]
// CHECK-LABEL: func private @layer
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<4x4xf32>, %[[B:.*]]: tensor<4xf32>) -> tensor<2x4xf32>
// CHECK: %[[D:.*]] = nn.dot_general %[[X]], %[[W]]
// CHECK: %[[BB:.*]] = nn.broadcast %[[B]]
// CHECK: %[[A:.*]] = arith.addf %[[D]], %[[BB]]
// CHECK: %[[T:.*]] = math.tanh %[[A]]
// CHECK: return %[[T]]
func.func @main(%x: tensor<2x4xf32>, %w0: tensor<4x4xf32>, %b0: tensor<4xf32>, %w1: tensor<4x4xf32>, %b1: tensor<4xf32>) -> tensor<2x4xf32> {
  %e = math.exp %x : tensor<2x4xf32>
  %d0 = nn.dot_general %e, %w0 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %bb0 = nn.broadcast %b0 dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %a0 = arith.addf %d0, %bb0 : tensor<2x4xf32>
  %t0 = math.tanh %a0 : tensor<2x4xf32>
  %d1 = nn.dot_general %t0, %w1 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %bb1 = nn.broadcast %b1 dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %a1 = arith.addf %d1, %bb1 : tensor<2x4xf32>
  %t1 = math.tanh %a1 : tensor<2x4xf32>
  %s = math.sin %t1 : tensor<2x4xf32>
  return %s : tensor<2x4xf32>
}

// -----

// A mask that both layers read, computed among the operations of the first, moves before it.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[M:.*]]: tensor<4xf32>, %[[W0:.*]]: tensor<4x4xf32>, %[[W1:.*]]: tensor<4x4xf32>)
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[M]]
// CHECK-NEXT: %[[L0:.*]] = call @layer(%[[X]], %[[W0]], %[[N]])
// CHECK-NEXT: call @layer(%[[L0]], %[[W1]], %[[N]])
// CHECK-LABEL: func private @layer
func.func @main(%x: tensor<2x4xf32>, %m: tensor<4xf32>, %w0: tensor<4x4xf32>, %w1: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %d0 = nn.dot_general %x, %w0 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %n = arith.negf %m : tensor<4xf32>
  %nb = nn.broadcast %n dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %a0 = arith.addf %d0, %nb : tensor<2x4xf32>
  %t0 = math.tanh %a0 : tensor<2x4xf32>
  %d1 = nn.dot_general %t0, %w1 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %a1 = arith.addf %d1, %nb : tensor<2x4xf32>
  %t1 = math.tanh %a1 : tensor<2x4xf32>
  return %t1 : tensor<2x4xf32>
}

// -----

// If @main returns a value from the middle of a layer, every layer returns it.
// CHECK-LABEL: func @main
// CHECK: %[[L0:.*]]:2 = call @layer(
// CHECK: %[[L1:.*]]:2 = call @layer(%[[L0]]#1
// CHECK: return %[[L0]]#0, %[[L1]]#1
func.func @main(%x: tensor<2x4xf32>, %w0: tensor<4x4xf32>, %w1: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %d0 = nn.dot_general %x, %w0 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %t0 = math.tanh %d0 : tensor<2x4xf32>
  %d1 = nn.dot_general %t0, %w1 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %t1 = math.tanh %d1 : tensor<2x4xf32>
  return %d0, %t1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// The summands are equal in one layer and different in the other: the function has two arguments.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<4x4xf32>, %[[A:.*]]: tensor<2x4xf32>, %[[B:.*]]: tensor<2x4xf32>)
// CHECK: %[[L0:.*]] = call @layer(%[[X]], %[[W]], %[[A]], %[[A]])
// CHECK: call @layer(%[[L0]], %[[W]], %[[A]], %[[B]])
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %a: tensor<2x4xf32>, %b: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %d0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %p0 = arith.mulf %d0, %a : tensor<2x4xf32>
  %q0 = arith.addf %p0, %a : tensor<2x4xf32>
  %d1 = nn.dot_general %q0, %w contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %p1 = arith.mulf %d1, %a : tensor<2x4xf32>
  %q1 = arith.addf %p1, %b : tensor<2x4xf32>
  return %q1 : tensor<2x4xf32>
}

// -----

// Functions are named after the scopes in locations, if there are any.
// CHECK-LABEL: func @main
// CHECK: call @encoder_block(
// CHECK: call @encoder_block(
// CHECK: func private @encoder_block(
func.func @main(%x: tensor<2x4xf32>, %w0: tensor<4x4xf32>, %w1: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %d0 = nn.dot_general %x, %w0 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> loc("/encoder/block.0/MatMul")
  %t0 = math.tanh %d0 : tensor<2x4xf32> loc("/encoder/block.0/Tanh")
  %d1 = nn.dot_general %t0, %w1 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> loc("/encoder/block.1/MatMul")
  %t1 = math.tanh %d1 : tensor<2x4xf32> loc("/encoder/block.1/Tanh")
  return %t1 : tensor<2x4xf32>
}

// -----

// Layers of different sizes do not share a function.
// CHECK-LABEL: func @main
// CHECK-NOT: call
func.func @main(%x: tensor<2x4xf32>, %w0: tensor<4x4xf32>, %w1: tensor<4x8xf32>) -> tensor<2x8xf32> {
  %d0 = nn.dot_general %x, %w0 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %t0 = math.tanh %d0 : tensor<2x4xf32>
  %d1 = nn.dot_general %t0, %w1 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  %t1 = math.tanh %d1 : tensor<2x8xf32>
  return %t1 : tensor<2x8xf32>
}

// -----

// Layers take their rows of a stacked parameter from outside.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<2x4x4xf32>)
// CHECK-DAG: %[[W0:.*]] = nn.slice %[[W]] starts = [0, 0, 0]
// CHECK-DAG: %[[W1:.*]] = nn.slice %[[W]] starts = [1, 0, 0]
// CHECK: %[[L0:.*]] = call @layer(%[[X]], %[[W0]])
// CHECK: %[[L1:.*]] = call @layer(%[[L0]], %[[W1]])
// CHECK: return %[[L1]]
func.func @main(%x: tensor<2x4xf32>, %w: tensor<2x4x4xf32>) -> tensor<2x4xf32> {
  %s0 = nn.slice %w starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x4x4xf32> -> tensor<1x4x4xf32>
  %r0 = nn.reshape %s0 : tensor<1x4x4xf32> -> tensor<4x4xf32>
  %d0 = nn.dot_general %x, %r0 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %t0 = math.tanh %d0 : tensor<2x4xf32>
  %s1 = nn.slice %w starts = [1, 0, 0] strides = [1, 1, 1] : tensor<2x4x4xf32> -> tensor<1x4x4xf32>
  %r1 = nn.reshape %s1 : tensor<1x4x4xf32> -> tensor<4x4xf32>
  %d1 = nn.dot_general %t0, %r1 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %t1 = math.tanh %d1 : tensor<2x4xf32>
  return %t1 : tensor<2x4xf32>
}
