// RUN: partita-opt %s --partita-expand-experts --split-input-file | FileCheck %s

// Rows of other matrices are 0 in the product with all matrices.
// CHECK-LABEL: @product_of_all
// CHECK: %[[OWN:.*]] = arith.select %{{.*}} : tensor<6x3x4xi1>, tensor<6x3x4xf64>
// CHECK: nn.dot_general %[[OWN]], %arg2 contract = [1, 2] x [0, 2] : tensor<6x3x4xf64>, tensor<3x5x4xf64> -> tensor<6x5xf64>
func.func @product_of_all(%x: tensor<6x4xf64>, %ids: tensor<6xi64>, %w: tensor<3x5x4xf64>) -> tensor<6x5xf64> {
  %y = nn.grouped_dot %x[%ids], %w : tensor<6x4xf64>, tensor<6xi64>, tensor<3x5x4xf64> -> tensor<6x5xf64>
  return %y : tensor<6x5xf64>
}

// -----

// Libraries and kernels compute this product.
// CHECK-LABEL: @grouped_dot
// CHECK: nn.grouped_dot %arg0[%arg1], %arg2
func.func @grouped_dot(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %w: tensor<3x5x4xf32>) -> tensor<6x5xf32> {
  %y = nn.grouped_dot %x[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}

// -----

// Each position has a row for each of its two experts. Products have the share of rows of their experts.
// CHECK-LABEL: @experts
// CHECK-NOT: nn.experts
// CHECK-NOT: nn.dot_general
// CHECK-COUNT-3: nn.grouped_dot {{.*}}{nn.row_share = 5.000000e-01 : f64}
// CHECK: nn.reduce sum %{{.*}} dims = [1] : tensor<10x2x4xf32> -> tensor<10x4xf32>
func.func @experts(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %g: tensor<3x6x4xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) -> tensor<2x5x4xf32> {
  %y = nn.experts %x[%ids], %p gate(%g : tensor<3x6x4xf32>) up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = silu {nn.row_share = 5.0e-1 : f64} : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return %y : tensor<2x5x4xf32>
}

// -----

// CHECK-LABEL: @experts_grad
// CHECK-NOT: nn.experts_grad
// CHECK-NOT: nn.dot_general
// CHECK-DAG: nn.grouped_dot_weight_grad
func.func @experts_grad(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %y: tensor<2x5x4xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) -> (tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>) {
  %dx, %dp, %du, %dd = nn.experts_grad %x[%ids], %p, %y up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>
  return %dx, %dp, %du, %dd : tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>
}

// -----

// Libraries and kernels know neither f64 nor indices of 16 bits nor empty tensors.
// CHECK-LABEL: @unknown
// CHECK-NOT: nn.grouped_dot
// CHECK: return
func.func @unknown(%x: tensor<6x4xf64>, %ids: tensor<6xi64>, %w: tensor<3x5x4xf64>, %xs: tensor<6x4xf32>, %short: tensor<6xi16>, %ws: tensor<3x5x4xf32>, %none: tensor<3x5x0xf32>, %rows: tensor<6x0xf32>) -> (tensor<6x5xf64>, tensor<6x5xf32>, tensor<6x5xf32>) {
  %0 = nn.grouped_dot %x[%ids], %w : tensor<6x4xf64>, tensor<6xi64>, tensor<3x5x4xf64> -> tensor<6x5xf64>
  %1 = nn.grouped_dot %xs[%short], %ws : tensor<6x4xf32>, tensor<6xi16>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  %2 = nn.grouped_dot %rows[%ids], %none : tensor<6x0xf32>, tensor<6xi64>, tensor<3x5x0xf32> -> tensor<6x5xf32>
  return %0, %1, %2 : tensor<6x5xf64>, tensor<6x5xf32>, tensor<6x5xf32>
}
