// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @grouped_dot_weight_grad_c1(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %g: tensor<6x5xf32>) {
  // expected-error@+1 {{'nn.grouped_dot_weight_grad' op expected a result of shape [3, 5, 4], found [3, 4, 5]}}
  %d = nn.grouped_dot_weight_grad %x[%ids], %g : tensor<6x4xf32>, tensor<6xi64>, tensor<6x5xf32> -> tensor<3x4x5xf32>
  return
}

// -----

func.func @grouped_dot_weight_grad_c1_rows(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %g: tensor<5x5xf32>) {
  // expected-error@+1 {{'nn.grouped_dot_weight_grad' op expected result_grad of shape [6, 5], found [5, 5]}}
  %d = nn.grouped_dot_weight_grad %x[%ids], %g : tensor<6x4xf32>, tensor<6xi64>, tensor<5x5xf32> -> tensor<3x5x4xf32>
  return
}

// -----

func.func @grouped_dot_weight_grad_c1_rank(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %g: tensor<6x5xf32>) {
  // expected-error@+1 {{'nn.grouped_dot_weight_grad' op expected a result of shape [X, N, K], found [5, 4]}}
  %d = nn.grouped_dot_weight_grad %x[%ids], %g : tensor<6x4xf32>, tensor<6xi64>, tensor<6x5xf32> -> tensor<5x4xf32>
  return
}
