// RUN: partita-opt %s --partita-order-rows --cse --split-input-file | FileCheck %s

// The product and the gradients share an order.
// CHECK-LABEL: @product_and_gradients
// CHECK: %[[ORDER:.*]] = nn.order_rows %arg1 matrices = 3 : tensor<6xi64> -> tensor<11xi32>
// CHECK-NOT: nn.order_rows
// CHECK-DAG: nn.ordered_dot %arg0[%[[ORDER]]], %arg2 : tensor<6x4xbf16>, tensor<11xi32>, tensor<3x5x4xbf16> -> tensor<6x5xbf16>
// CHECK-DAG: nn.ordered_dot %arg3[%[[ORDER]]], %arg2 transposed : tensor<6x5xbf16>, tensor<11xi32>, tensor<3x5x4xbf16> -> tensor<6x4xbf16>
// CHECK-DAG: nn.ordered_dot_weight_grad %arg0[%[[ORDER]]], %arg3 {nn.row_share = 5.000000e-01 : f64} : tensor<6x4xbf16>, tensor<11xi32>, tensor<6x5xbf16> -> tensor<3x5x4xbf16>
// CHECK-NOT: nn.grouped_dot
func.func @product_and_gradients(%x: tensor<6x4xbf16>, %ids: tensor<6xi64>, %w: tensor<3x5x4xbf16>, %g: tensor<6x5xbf16>) -> (tensor<6x5xbf16>, tensor<6x4xbf16>, tensor<3x5x4xbf16>) {
  %0 = nn.grouped_dot %x[%ids], %w : tensor<6x4xbf16>, tensor<6xi64>, tensor<3x5x4xbf16> -> tensor<6x5xbf16>
  %1 = nn.grouped_dot %g[%ids], %w transposed : tensor<6x5xbf16>, tensor<6xi64>, tensor<3x5x4xbf16> -> tensor<6x4xbf16>
  %2 = nn.grouped_dot_weight_grad %x[%ids], %g {nn.row_share = 5.0e-1 : f64} : tensor<6x4xbf16>, tensor<6xi64>, tensor<6x5xbf16> -> tensor<3x5x4xbf16>
  return %0, %1, %2 : tensor<6x5xbf16>, tensor<6x4xbf16>, tensor<3x5x4xbf16>
}

// -----

// Tensor cores do not multiply f64.
// CHECK-LABEL: @f64
// CHECK: nn.grouped_dot
func.func @f64(%x: tensor<6x4xf64>, %ids: tensor<6xi64>, %w: tensor<3x5x4xf64>) -> tensor<6x5xf64> {
  %0 = nn.grouped_dot %x[%ids], %w : tensor<6x4xf64>, tensor<6xi64>, tensor<3x5x4xf64> -> tensor<6x5xf64>
  return %0 : tensor<6x5xf64>
}
