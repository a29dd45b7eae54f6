// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: partita-opt %s --canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: @reduce
// CHECK: nn.reduce sum %arg0 dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
func.func @reduce(%x: tensor<2x3xf32>) {
  %y = nn.reduce sum %x dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// CANON-LABEL: @over_nothing
// CANON-NEXT: return %arg0
func.func @over_nothing(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = nn.reduce sum %x dims = [] : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CANON-LABEL: @of_a_constant
// CANON-NEXT: arith.constant dense<24> : tensor<i64>
func.func @of_a_constant() -> tensor<i64> {
  %0 = arith.constant dense<[2, 3, 4]> : tensor<3xi64>
  %1 = nn.reduce prod %0 dims = [0] : tensor<3xi64> -> tensor<i64>
  return %1 : tensor<i64>
}
