// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: partita-opt %s --canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: @slice
// CHECK: nn.slice %arg0 starts = [0, 2] strides = [1, 1] : tensor<4x6xf32> -> tensor<4x3xf32>
func.func @slice(%x: tensor<4x6xf32>) {
  %y = nn.slice %x starts = [0, 2] strides = [1, 1] : tensor<4x6xf32> -> tensor<4x3xf32>
  return
}

// CANON-LABEL: @that_takes_all
// CANON-NEXT: return %arg0
func.func @that_takes_all(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.slice %x starts = [0, 0] strides = [1, 1] : tensor<2x4xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CANON-LABEL: @that_reverses
// CANON-NEXT: nn.slice
func.func @that_reverses(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.slice %x starts = [3] strides = [-1] : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CANON-LABEL: @twice
// CANON-NEXT: nn.slice %arg0 starts = [7] strides = [-4] : tensor<9xf32> -> tensor<2xf32>
// CANON-NEXT: return
func.func @twice(%x: tensor<9xf32>) -> tensor<2xf32> {
  %0 = nn.slice %x starts = [1] strides = [2] : tensor<9xf32> -> tensor<4xf32>
  %1 = nn.slice %0 starts = [3] strides = [-2] : tensor<4xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CANON-LABEL: @of_a_constant
// CANON-NEXT: arith.constant dense<[4, 2]> : tensor<2xi64>
func.func @of_a_constant() -> tensor<2xi64> {
  %0 = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %1 = nn.slice %0 starts = [3] strides = [-2] : tensor<4xi64> -> tensor<2xi64>
  return %1 : tensor<2xi64>
}
