// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @reduce_window_c1(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'nn.reduce_window' op expected 'window' to have 2 entries of at least 1, found [2]}}
  %0 = nn.reduce_window max %x window = [2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : tensor<2x8xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @reduce_window_c1_negative(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'nn.reduce_window' op expected 'low' to have 2 entries of at least 0, found [0, -1]}}
  %0 = nn.reduce_window max %x window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, -1] high = [0, 0] : tensor<2x8xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @reduce_window_c2(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'nn.reduce_window' op expected a result of type 'tensor<2x4xf32>', found 'tensor<2x8xf32>'}}
  %0 = nn.reduce_window max %x window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : tensor<2x8xf32> -> tensor<2x8xf32>
  return
}
