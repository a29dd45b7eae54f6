// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @reshape_c1(%x: tensor<2x6xf32>) {
  // expected-error@+1 {{'nn.reshape' op expected a result of 12 elements, as the input has, found 15}}
  %0 = nn.reshape %x : tensor<2x6xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @reshape_c1_type(%x: tensor<2x6xf32>) {
  // expected-error@+1 {{'nn.reshape' op expected equal element types, found 'f32' and 'i32'}}
  %0 = nn.reshape %x : tensor<2x6xf32> -> tensor<3x4xi32>
  return
}
