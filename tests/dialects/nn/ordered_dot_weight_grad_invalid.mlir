// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @ordered_dot_weight_grad_c1(%x: tensor<6x4xf32>, %o: tensor<11xi32>, %g: tensor<6x5xf32>) {
  // expected-error@+1 {{'nn.ordered_dot_weight_grad' op expected a result of shape [3, 5, 4], found [3, 4, 5]}}
  %d = nn.ordered_dot_weight_grad %x[%o], %g : tensor<6x4xf32>, tensor<11xi32>, tensor<6x5xf32> -> tensor<3x4x5xf32>
  return
}

// -----

func.func @ordered_dot_weight_grad_c1_order(%x: tensor<6x4xf32>, %o: tensor<10xi32>, %g: tensor<6x5xf32>) {
  // expected-error@+1 {{'nn.ordered_dot_weight_grad' op expected an order of shape [11], found [10]}}
  %d = nn.ordered_dot_weight_grad %x[%o], %g : tensor<6x4xf32>, tensor<10xi32>, tensor<6x5xf32> -> tensor<3x5x4xf32>
  return
}

// -----

func.func @ordered_dot_weight_grad_c1_rows(%x: tensor<6x4xf32>, %o: tensor<11xi32>, %g: tensor<5x5xf32>) {
  // expected-error@+1 {{'nn.ordered_dot_weight_grad' op expected result_grad of shape [6, 5], found [5, 5]}}
  %d = nn.ordered_dot_weight_grad %x[%o], %g : tensor<6x4xf32>, tensor<11xi32>, tensor<5x5xf32> -> tensor<3x5x4xf32>
  return
}
