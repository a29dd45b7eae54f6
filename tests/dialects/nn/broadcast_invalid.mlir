// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @broadcast_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{'nn.broadcast' op expected 'dims' to have one entry for each of the input's 1 dimensions, found [0, 1]}}
  %0 = nn.broadcast %x dims = [0, 1] : tensor<4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @broadcast_c1_order(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'nn.broadcast' op expected 'dims' to be increasing dimensions of a result of rank 2, found [1, 0]}}
  %0 = nn.broadcast %x dims = [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @broadcast_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{'nn.broadcast' op expected the input's size 0 to be 1 or the result's size 0, which is 2, found 4}}
  %0 = nn.broadcast %x dims = [0] : tensor<4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @broadcast_c3(%x: tensor<4xf32>) {
  // expected-error@+1 {{'nn.broadcast' op expected equal element types, found 'f32' and 'bf16'}}
  %0 = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<2x4xbf16>
  return
}
