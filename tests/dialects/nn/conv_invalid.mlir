// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @conv_c1(%x: tensor<1x4x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv' op expected input, weight and result of one rank from 3 to 5, found 3, 3 and 2}}
  %0 = nn.conv %x, %w strides = [1] dilations = [1] low = [1] high = [1] groups = 1 : tensor<1x4x8xf32>, tensor<6x4x3xf32> -> tensor<1x6xf32>
  return
}

// -----

func.func @conv_c1_type(%x: tensor<1x4x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv' op expected equal element types, found 'f32' and 'f64'}}
  %0 = nn.conv %x, %w strides = [1] dilations = [1] low = [1] high = [1] groups = 1 : tensor<1x4x8xf32>, tensor<6x4x3xf32> -> tensor<1x6x8xf64>
  return
}

// -----

func.func @conv_c2(%x: tensor<1x4x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv' op expected 'strides' to have 1 entries of at least 1, found [0]}}
  %0 = nn.conv %x, %w strides = [0] dilations = [1] low = [1] high = [1] groups = 1 : tensor<1x4x8xf32>, tensor<6x4x3xf32> -> tensor<1x6x8xf32>
  return
}

// -----

func.func @conv_c2_count(%x: tensor<1x4x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv' op expected 'low' to have 1 entries of at least 0, found [1, 1]}}
  %0 = nn.conv %x, %w strides = [1] dilations = [1] low = [1, 1] high = [1] groups = 1 : tensor<1x4x8xf32>, tensor<6x4x3xf32> -> tensor<1x6x8xf32>
  return
}

// -----

func.func @conv_c3(%x: tensor<1x4x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv' op expected 'groups' to be positive and to divide the 4 input and 6 output channels, found 3}}
  %0 = nn.conv %x, %w strides = [1] dilations = [1] low = [1] high = [1] groups = 3 : tensor<1x4x8xf32>, tensor<6x4x3xf32> -> tensor<1x6x8xf32>
  return
}

// -----

func.func @conv_c3_weight(%x: tensor<1x4x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv' op expected a weight whose size 1 is 2, the input channels of a group, found 4}}
  %0 = nn.conv %x, %w strides = [1] dilations = [1] low = [1] high = [1] groups = 2 : tensor<1x4x8xf32>, tensor<6x4x3xf32> -> tensor<1x6x8xf32>
  return
}

// -----

func.func @conv_c4(%x: tensor<1x4x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv' op expected a result of shape [1, 6, 4], found [1, 6, 8]}}
  %0 = nn.conv %x, %w strides = [2] dilations = [1] low = [1] high = [1] groups = 1 : tensor<1x4x8xf32>, tensor<6x4x3xf32> -> tensor<1x6x8xf32>
  return
}
