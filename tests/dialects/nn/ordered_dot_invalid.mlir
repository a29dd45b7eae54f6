// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @ordered_dot_c1(%x: tensor<6x4xf32>, %o: tensor<11xi32>, %w: tensor<3x5x4xf32>) {
  // expected-error@+1 {{'nn.ordered_dot' op expected a result of shape [6, 5], found [6, 4]}}
  %y = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<11xi32>, tensor<3x5x4xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @ordered_dot_c1_order(%x: tensor<6x4xf32>, %o: tensor<6xi32>, %w: tensor<3x5x4xf32>) {
  // expected-error@+1 {{'nn.ordered_dot' op expected an order of shape [11], found [6]}}
  %y = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<6xi32>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  return
}

// -----

func.func @ordered_dot_c1_transposed(%x: tensor<6x4xf32>, %o: tensor<11xi32>, %w: tensor<3x5x4xf32>) {
  // expected-error@+1 {{'nn.ordered_dot' op expected w of shape [3, 4, 4], found [3, 5, 4]}}
  %y = nn.ordered_dot %x[%o], %w transposed : tensor<6x4xf32>, tensor<11xi32>, tensor<3x5x4xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @ordered_dot_c1_rank(%x: tensor<6x4xf32>, %o: tensor<11xi32>, %w: tensor<5x4xf32>) {
  // expected-error@+1 {{'nn.ordered_dot' op expected w of rank 3, found 2}}
  %y = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<11xi32>, tensor<5x4xf32> -> tensor<6x5xf32>
  return
}
