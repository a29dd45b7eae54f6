// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @slice_c1(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected 'starts' and 'strides' to have one entry for each of the input's 2 dimensions, found [0] and [1, 1]}}
  %0 = nn.slice %x starts = [0] strides = [1, 1] : tensor<4x6xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @slice_c1_zero(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected 'strides' without 0, found [1, 0]}}
  %0 = nn.slice %x starts = [0, 2] strides = [1, 0] : tensor<4x6xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @slice_c2(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected elements of dimension 1 to lie inside its size 6, found the first at 2 and the last at 6}}
  %0 = nn.slice %x starts = [0, 2] strides = [1, 2] : tensor<4x6xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @slice_c2_backwards(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected elements of dimension 1 to lie inside its size 6, found the first at 1 and the last at -1}}
  %0 = nn.slice %x starts = [0, 1] strides = [1, -1] : tensor<4x6xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @slice_c2_rank(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'nn.slice' op expected a result of the input's rank 2, found 1}}
  %0 = nn.slice %x starts = [0, 2] strides = [1, 1] : tensor<4x6xf32> -> tensor<4xf32>
  return
}
