// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: partita-opt %s --canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: @reshape
// CHECK: nn.reshape %arg0 : tensor<2x6xf32> -> tensor<3x4xf32>
func.func @reshape(%x: tensor<2x6xf32>) {
  %y = nn.reshape %x : tensor<2x6xf32> -> tensor<3x4xf32>
  return
}

// CANON-LABEL: @to_its_own_type
// CANON-NEXT: return %arg0
func.func @to_its_own_type(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.reshape %x : tensor<2x4xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CANON-LABEL: @there_and_back
// CANON-NEXT: return %arg0
func.func @there_and_back(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.reshape %x : tensor<2x4xf32> -> tensor<8xf32>
  %1 = nn.reshape %0 : tensor<8xf32> -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// CANON-LABEL: @of_a_small_constant
// CANON-NEXT: arith.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi64>
// CANON-NEXT: return
func.func @of_a_small_constant() -> tensor<2x2xi64> {
  %0 = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %1 = nn.reshape %0 : tensor<4xi64> -> tensor<2x2xi64>
  return %1 : tensor<2x2xi64>
}

// CANON-LABEL: @of_a_splat
// CANON-NEXT: arith.constant dense<1> : tensor<1000x1000xi64>
func.func @of_a_splat() -> tensor<1000x1000xi64> {
  %0 = arith.constant dense<1> : tensor<1000000xi64>
  %1 = nn.reshape %0 : tensor<1000000xi64> -> tensor<1000x1000xi64>
  return %1 : tensor<1000x1000xi64>
}
