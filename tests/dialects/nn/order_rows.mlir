// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @order_rows
// CHECK: nn.order_rows %arg0 matrices = 3 : tensor<6xi64> -> tensor<11xi32>
func.func @order_rows(%ids: tensor<6xi64>) {
  %o = nn.order_rows %ids matrices = 3 : tensor<6xi64> -> tensor<11xi32>
  return
}
