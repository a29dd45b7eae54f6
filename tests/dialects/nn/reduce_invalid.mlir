// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @reduce_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'nn.reduce' op expected 'dims' to be increasing dimensions of an input of rank 2, found [1, 0]}}
  %0 = nn.reduce sum %x dims = [1, 0] : tensor<2x3xf32> -> tensor<f32>
  return
}

// -----

func.func @reduce_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'nn.reduce' op expected a result of type 'tensor<2xf32>', found 'tensor<3xf32>'}}
  %0 = nn.reduce sum %x dims = [1] : tensor<2x3xf32> -> tensor<3xf32>
  return
}
