// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: partita-opt %s --canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: @transpose
// CHECK: nn.transpose %arg0 perm = [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
func.func @transpose(%x: tensor<2x3xf32>) {
  %y = nn.transpose %x perm = [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// CANON-LABEL: @that_moves_nothing
// CANON-NEXT: return %arg0
func.func @that_moves_nothing(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.transpose %x perm = [0, 1] : tensor<2x4xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CANON-LABEL: @twice
// CANON-NEXT: nn.transpose %arg0 perm = [2, 1, 0] : tensor<2x3x4xf32> -> tensor<4x3x2xf32>
// CANON-NEXT: return
func.func @twice(%x: tensor<2x3x4xf32>) -> tensor<4x3x2xf32> {
  %0 = nn.transpose %x perm = [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %1 = nn.transpose %0 perm = [1, 0, 2] : tensor<3x4x2xf32> -> tensor<4x3x2xf32>
  return %1 : tensor<4x3x2xf32>
}

// CANON-LABEL: @there_and_back
// CANON-NEXT: return %arg0
func.func @there_and_back(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = nn.transpose %x perm = [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %1 = nn.transpose %0 perm = [2, 0, 1] : tensor<3x4x2xf32> -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// CANON-LABEL: @that_moves_ones
// CANON-NEXT: nn.reshape %arg0 : tensor<2x1x3xf32> -> tensor<1x2x3xf32>
func.func @that_moves_ones(%x: tensor<2x1x3xf32>) -> tensor<1x2x3xf32> {
  %0 = nn.transpose %x perm = [1, 0, 2] : tensor<2x1x3xf32> -> tensor<1x2x3xf32>
  return %0 : tensor<1x2x3xf32>
}

// CANON-LABEL: @of_a_small_constant
// CANON-NEXT: arith.constant dense<{{\[\[}}1, 3], [2, 4]]> : tensor<2x2xi64>
func.func @of_a_small_constant() -> tensor<2x2xi64> {
  %0 = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>
  %1 = nn.transpose %0 perm = [1, 0] : tensor<2x2xi64> -> tensor<2x2xi64>
  return %1 : tensor<2x2xi64>
}

// Matrices are transposed twice, counted differently in between.
// CANON-LABEL: @through_reshape
// CANON-NEXT: %[[Y:.*]] = nn.reshape %{{.*}} : tensor<3x2x5x8xf32> -> tensor<3x2x1x5x8xf32>
// CANON-NEXT: return %[[Y]]
func.func @through_reshape(%x: tensor<3x2x5x8xf32>) -> tensor<3x2x1x5x8xf32> {
  %0 = nn.reshape %x : tensor<3x2x5x8xf32> -> tensor<6x5x8xf32>
  %1 = nn.transpose %0 perm = [0, 2, 1] : tensor<6x5x8xf32> -> tensor<6x8x5xf32>
  %2 = nn.reshape %1 : tensor<6x8x5xf32> -> tensor<3x2x1x8x5xf32>
  %3 = nn.transpose %2 perm = [0, 1, 2, 4, 3] : tensor<3x2x1x8x5xf32> -> tensor<3x2x1x5x8xf32>
  return %3 : tensor<3x2x1x5x8xf32>
}

// The reshape splits a matrix.
// CANON-LABEL: @through_reshape_of_columns
// CANON: nn.transpose
// CANON: nn.reshape
// CANON: nn.transpose
func.func @through_reshape_of_columns(%x: tensor<6x4x8xf32>) -> tensor<6x2x4x4xf32> {
  %0 = nn.transpose %x perm = [0, 2, 1] : tensor<6x4x8xf32> -> tensor<6x8x4xf32>
  %1 = nn.reshape %0 : tensor<6x8x4xf32> -> tensor<6x2x4x4xf32>
  %2 = nn.transpose %1 perm = [0, 1, 3, 2] : tensor<6x2x4x4xf32> -> tensor<6x2x4x4xf32>
  return %2 : tensor<6x2x4x4xf32>
}
