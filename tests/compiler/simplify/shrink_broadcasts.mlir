// RUN: partita-opt %s --partita-shrink-broadcasts | FileCheck %s

// CHECK-LABEL: func @mask
// CHECK-SAME: (%[[M:.*]]: tensor<2x8xf32>)
// CHECK: %[[C:.*]] = arith.constant dense<-1.000000e+04> : tensor<2x1x1x8xf32>
// CHECK: %[[K:.*]] = nn.reshape %[[M]] : tensor<2x8xf32> -> tensor<2x1x1x8xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[K]], %[[C]] : tensor<2x1x1x8xf32>
// CHECK: %[[Y:.*]] = nn.broadcast %[[P]] dims = [0, 1, 2, 3] : tensor<2x1x1x8xf32> -> tensor<2x4x8x8xf32>
// CHECK: return %[[Y]]
func.func @mask(%mask: tensor<2x8xf32>) -> tensor<2x4x8x8xf32> {
  %low = arith.constant dense<-1.0e4> : tensor<2x4x8x8xf32>
  %mask_b = nn.broadcast %mask dims = [0, 3] : tensor<2x8xf32> -> tensor<2x4x8x8xf32>
  %y = arith.mulf %mask_b, %low : tensor<2x4x8x8xf32>
  return %y : tensor<2x4x8x8xf32>
}

// Rows and columns have only the batch as a common repeated dimension.
// CHECK-LABEL: func @outer
// CHECK: arith.cmpi sle, %{{.*}}, %{{.*}} : tensor<1x4x4xi64>
// CHECK: nn.broadcast %{{.*}} dims = [0, 1, 2] : tensor<1x4x4xi1> -> tensor<3x4x4xi1>
func.func @outer(%rows: tensor<4xi64>, %columns: tensor<4xi64>) -> tensor<3x4x4xi1> {
  %r = nn.broadcast %rows dims = [1] : tensor<4xi64> -> tensor<3x4x4xi64>
  %c = nn.broadcast %columns dims = [2] : tensor<4xi64> -> tensor<3x4x4xi64>
  %y = arith.cmpi sle, %c, %r : tensor<3x4x4xi64>
  return %y : tensor<3x4x4xi1>
}

// CHECK-LABEL: func @nothing_shared
// CHECK: arith.addf %{{.*}}, %{{.*}} : tensor<4x4xf32>
// CHECK-NEXT: return
func.func @nothing_shared(%rows: tensor<4xf32>, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = nn.broadcast %rows dims = [0] : tensor<4xf32> -> tensor<4x4xf32>
  %y = arith.addf %r, %x : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// A gather with the same indices for each batch moves before the repetition.
// CHECK-LABEL: func @gather
// CHECK: %[[G:.*]] = nn.gather %{{.*}}[%{{.*}}] axes = [0] : tensor<9x4xf32>, tensor<1x3x1xi64> -> tensor<1x3x4xf32>
// CHECK: nn.broadcast %[[G]] dims = [0, 1, 2] : tensor<1x3x4xf32> -> tensor<2x3x4xf32>
func.func @gather(%table: tensor<9x4xf32>, %indices: tensor<3xi64>) -> tensor<2x3x4xf32> {
  %i = nn.broadcast %indices dims = [1] : tensor<3xi64> -> tensor<2x3x1xi64>
  %y = nn.gather %table[%i] axes = [0] : tensor<9x4xf32>, tensor<2x3x1xi64> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func @constant
// CHECK: arith.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00]]> : tensor<1x2xf32>
// CHECK: nn.broadcast %{{.*}} dims = [0, 1] : tensor<1x2xf32> -> tensor<3x2xf32>
func.func @constant() -> tensor<3x2xf32> {
  %y = arith.constant dense<[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]> : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// An empty constant stays.
// CHECK-LABEL: func @empty_constant
// CHECK-NEXT: arith.constant dense<> : tensor<0x2xf32>
func.func @empty_constant() -> tensor<0x2xf32> {
  %y = arith.constant dense<> : tensor<0x2xf32>
  return %y : tensor<0x2xf32>
}
