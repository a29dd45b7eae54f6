// RUN: partita-opt %s --split-input-file --partita-raise-quantized-products --canonicalize | FileCheck %s

// A weight with one scale per output channel: the product reads the integers.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[W:arg[0-9]+]]: tensor<4x8xi8>, %[[S:arg[0-9]+]]: tensor<8xf32>)
// CHECK-NEXT: %[[F:.*]] = arith.sitofp %[[W]] : tensor<4x8xi8> to tensor<4x8xf32>
// CHECK-NEXT: %[[P:.*]] = nn.dot_general %[[X]], %[[F]] contract = [1] x [0]
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[S]] dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[P]], %[[B]]
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x8xi8>, %s: tensor<8xf32>) -> tensor<2x8xf32> {
  %0 = arith.sitofp %w : tensor<4x8xi8> to tensor<4x8xf32>
  %1 = nn.broadcast %s dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %2 = arith.mulf %0, %1 : tensor<4x8xf32>
  %3 = nn.dot_general %x, %2 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}

// -----

// A weight on the left, of two output dimensions, with one scale for all.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[W:arg[0-9]+]]: tensor<3x4x5xi8>, %[[S:arg[0-9]+]]: tensor<f32>)
// CHECK: %[[P:.*]] = nn.dot_general %{{.*}}, %[[X]] contract = [1] x [1] : tensor<3x4x5xf32>, tensor<2x4xf32> -> tensor<3x5x2xf32>
// CHECK: %[[Y:.*]] = arith.mulf %[[P]], %{{.*}} : tensor<3x5x2xf32>
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<2x4xf32>, %w: tensor<3x4x5xi8>, %s: tensor<f32>) -> tensor<3x5x2xf32> {
  %0 = arith.sitofp %w : tensor<3x4x5xi8> to tensor<3x4x5xf32>
  %1 = nn.broadcast %s dims = [] : tensor<f32> -> tensor<3x4x5xf32>
  %2 = arith.mulf %1, %0 : tensor<3x4x5xf32>
  %3 = nn.dot_general %2, %x contract = [1] x [1] : tensor<3x4x5xf32>, tensor<2x4xf32> -> tensor<3x5x2xf32>
  return %3 : tensor<3x5x2xf32>
}

// -----

// Both operands are integers; the zero point of the unsigned one becomes a shift per channel.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xi8>, %[[W:arg[0-9]+]]: tensor<4x8xi8>, %[[A:arg[0-9]+]]: tensor<f32>, %[[S:arg[0-9]+]]: tensor<8xf32>)
// CHECK-DAG: %[[L:.*]] = arith.extui %[[X]] : tensor<2x4xi8> to tensor<2x4xi32>
// CHECK-DAG: %[[R:.*]] = arith.extsi %[[W]] : tensor<4x8xi8> to tensor<4x8xi32>
// CHECK-DAG: %[[P:.*]] = nn.dot_general %[[L]], %[[R]] contract = [1] x [0] : tensor<2x4xi32>, tensor<4x8xi32> -> tensor<2x8xi32>
// CHECK-DAG: %[[C:.*]] = nn.reduce sum %[[R]] dims = [0] : tensor<4x8xi32> -> tensor<8xi32>
// CHECK-DAG: %[[F:.*]] = arith.sitofp %[[P]] : tensor<2x8xi32> to tensor<2x8xf32>
// CHECK: %[[Y:.*]] = arith.addf
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<2x4xi8>, %w: tensor<4x8xi8>, %a: tensor<f32>, %s: tensor<8xf32>) -> tensor<2x8xf32> {
  %zero = arith.constant dense<120> : tensor<2x4xi32>
  %0 = arith.extui %x : tensor<2x4xi8> to tensor<2x4xi32>
  %1 = arith.subi %0, %zero : tensor<2x4xi32>
  %2 = arith.sitofp %1 : tensor<2x4xi32> to tensor<2x4xf32>
  %3 = nn.broadcast %a dims = [] : tensor<f32> -> tensor<2x4xf32>
  %4 = arith.mulf %2, %3 : tensor<2x4xf32>
  %5 = arith.extsi %w : tensor<4x8xi8> to tensor<4x8xi32>
  %6 = arith.sitofp %5 : tensor<4x8xi32> to tensor<4x8xf32>
  %7 = nn.broadcast %s dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %8 = arith.mulf %6, %7 : tensor<4x8xf32>
  %9 = nn.dot_general %4, %8 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  return %9 : tensor<2x8xf32>
}

// -----

// The shift joins a bias.
// CHECK-LABEL: func @main
// CHECK-SAME: %[[BIAS:arg[0-9]+]]: tensor<8xf32>)
// CHECK: %[[T:.*]] = arith.subf %[[BIAS]], %{{.*}} : tensor<8xf32>
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[T]] dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
// CHECK-NEXT: %[[Y:.*]] = arith.addf %{{.*}}, %[[B]]
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<2x4xi8>, %w: tensor<4x8xi8>, %a: tensor<f32>, %s: tensor<8xf32>, %z: tensor<i32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  %zero = nn.broadcast %z dims = [] : tensor<i32> -> tensor<2x4xi32>
  %0 = arith.extui %x : tensor<2x4xi8> to tensor<2x4xi32>
  %1 = arith.subi %0, %zero : tensor<2x4xi32>
  %2 = arith.sitofp %1 : tensor<2x4xi32> to tensor<2x4xf32>
  %3 = nn.broadcast %a dims = [] : tensor<f32> -> tensor<2x4xf32>
  %4 = arith.mulf %2, %3 : tensor<2x4xf32>
  %6 = arith.sitofp %w : tensor<4x8xi8> to tensor<4x8xf32>
  %7 = nn.broadcast %s dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %8 = arith.mulf %6, %7 : tensor<4x8xf32>
  %9 = nn.dot_general %4, %8 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  %10 = nn.broadcast %b dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
  %11 = arith.addf %9, %10 : tensor<2x8xf32>
  return %11 : tensor<2x8xf32>
}

// -----

// A scale along the contracted dimension stays in front of the product.
// CHECK-LABEL: func @main
// CHECK: %[[M:.*]] = arith.mulf
// CHECK-NEXT: nn.dot_general %{{.*}}, %[[M]]
// CHECK-NEXT: return
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x8xi8>, %s: tensor<4xf32>) -> tensor<2x8xf32> {
  %0 = arith.sitofp %w : tensor<4x8xi8> to tensor<4x8xf32>
  %1 = nn.broadcast %s dims = [0] : tensor<4xf32> -> tensor<4x8xf32>
  %2 = arith.mulf %0, %1 : tensor<4x8xf32>
  %3 = nn.dot_general %x, %2 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}

// -----

// So does the scale of a weight with a zero point.
// CHECK-LABEL: func @main
// CHECK: %[[M:.*]] = arith.mulf
// CHECK-NEXT: nn.dot_general %{{.*}}, %[[M]]
// CHECK-NEXT: return
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x8xi8>, %s: tensor<8xf32>) -> tensor<2x8xf32> {
  %zero = arith.constant dense<3> : tensor<4x8xi32>
  %e = arith.extsi %w : tensor<4x8xi8> to tensor<4x8xi32>
  %d = arith.subi %e, %zero : tensor<4x8xi32>
  %0 = arith.sitofp %d : tensor<4x8xi32> to tensor<4x8xf32>
  %1 = nn.broadcast %s dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %2 = arith.mulf %0, %1 : tensor<4x8xf32>
  %3 = nn.dot_general %x, %2 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}
