// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @order_rows_c1(%ids: tensor<6x1xi64>) {
  // expected-error@+1 {{'nn.order_rows' op expected ids of rank 1, found 2}}
  %o = nn.order_rows %ids matrices = 3 : tensor<6x1xi64> -> tensor<11xi32>
  return
}

// -----

func.func @order_rows_c1_matrices(%ids: tensor<6xi64>) {
  // expected-error@+1 {{'nn.order_rows' op expected at least 1 matrix, found 0}}
  %o = nn.order_rows %ids matrices = 0 : tensor<6xi64> -> tensor<8xi32>
  return
}

// -----

func.func @order_rows_c2(%ids: tensor<6xi64>) {
  // expected-error@+1 {{'nn.order_rows' op expected an order of shape [11], found [9]}}
  %o = nn.order_rows %ids matrices = 3 : tensor<6xi64> -> tensor<9xi32>
  return
}
