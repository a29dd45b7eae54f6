// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @softmax_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'nn.softmax' op expected 'axis' to be a dimension of a tensor of rank 2, found 2}}
  %0 = nn.softmax %x axis = 2 : tensor<2x3xf32>
  return
}

// -----

func.func @softmax_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'nn.softmax' op failed to verify that all of {input, result} have same type}}
  %0 = "nn.softmax"(%x) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
