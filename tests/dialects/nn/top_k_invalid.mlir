// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @top_k_c1(%x: tensor<2x9xf32>) {
  // expected-error@+1 {{'nn.top_k' op expected values whose last size is from 1 to 9, found 10}}
  %0:2 = nn.top_k %x largest = true : tensor<2x9xf32> -> tensor<2x10xf32>, tensor<2x10xi64>
  return
}

// -----

func.func @top_k_c1_scalar(%x: tensor<f32>) {
  // expected-error@+1 {{'nn.top_k' op expected an input of rank 1 or more, found 0}}
  %0:2 = nn.top_k %x largest = true : tensor<f32> -> tensor<f32>, tensor<i64>
  return
}

// -----

func.func @top_k_c2(%x: tensor<2x9xf32>) {
  // expected-error@+1 {{'nn.top_k' op expected values of type 'tensor<2x3xf32>', found 'tensor<2x3xf64>'}}
  %0:2 = nn.top_k %x largest = true : tensor<2x9xf32> -> tensor<2x3xf64>, tensor<2x3xi64>
  return
}

// -----

func.func @top_k_c2_indices(%x: tensor<2x9xf32>) {
  // expected-error@+1 {{'nn.top_k' op expected indices of shape [2, 3], found [2, 4]}}
  %0:2 = nn.top_k %x largest = true : tensor<2x9xf32> -> tensor<2x3xf32>, tensor<2x4xi64>
  return
}
