// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @transpose_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'nn.transpose' op expected 'perm' to be a permutation of the input's 2 dimensions, found [1, 1]}}
  %0 = nn.transpose %x perm = [1, 1] : tensor<2x3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @transpose_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'nn.transpose' op expected a result of type 'tensor<3x2xf32>', found 'tensor<2x3xf32>'}}
  %0 = nn.transpose %x perm = [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}
