// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @conv_input_grad_c1(%g: tensor<1x6x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv_input_grad' op expected result, weight and result_grad of one rank from 3 to 5, found 2, 3 and 3}}
  %0 = nn.conv_input_grad %g, %w strides = [1] dilations = [1] low = [1] high = [1] groups = 1 : tensor<1x6x8xf32>, tensor<6x4x3xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @conv_input_grad_c1_type(%g: tensor<1x6x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv_input_grad' op expected equal element types, found 'f64' and 'f32'}}
  %0 = nn.conv_input_grad %g, %w strides = [1] dilations = [1] low = [1] high = [1] groups = 1 : tensor<1x6x8xf32>, tensor<6x4x3xf32> -> tensor<1x4x8xf64>
  return
}

// -----

func.func @conv_input_grad_c2(%g: tensor<1x6x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv_input_grad' op expected 'strides' to have 1 entries of at least 1, found [0]}}
  %0 = nn.conv_input_grad %g, %w strides = [0] dilations = [1] low = [1] high = [1] groups = 1 : tensor<1x6x8xf32>, tensor<6x4x3xf32> -> tensor<1x4x8xf32>
  return
}

// -----

func.func @conv_input_grad_c2_count(%g: tensor<1x6x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv_input_grad' op expected 'low' to have 1 entries of at least 0, found [1, 1]}}
  %0 = nn.conv_input_grad %g, %w strides = [1] dilations = [1] low = [1, 1] high = [1] groups = 1 : tensor<1x6x8xf32>, tensor<6x4x3xf32> -> tensor<1x4x8xf32>
  return
}

// -----

func.func @conv_input_grad_c3(%g: tensor<1x6x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv_input_grad' op expected 'groups' to be positive and to divide the 4 input and 6 output channels, found 3}}
  %0 = nn.conv_input_grad %g, %w strides = [1] dilations = [1] low = [1] high = [1] groups = 3 : tensor<1x6x8xf32>, tensor<6x4x3xf32> -> tensor<1x4x8xf32>
  return
}

// -----

func.func @conv_input_grad_c3_weight(%g: tensor<1x6x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv_input_grad' op expected a weight whose size 1 is 2, the input channels of a group, found 4}}
  %0 = nn.conv_input_grad %g, %w strides = [1] dilations = [1] low = [1] high = [1] groups = 2 : tensor<1x6x8xf32>, tensor<6x4x3xf32> -> tensor<1x4x8xf32>
  return
}

// -----

func.func @conv_input_grad_c4(%g: tensor<1x6x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error@+1 {{'nn.conv_input_grad' op expected a result_grad of shape [1, 6, 4], found [1, 6, 8]}}
  %0 = nn.conv_input_grad %g, %w strides = [2] dilations = [1] low = [1] high = [1] groups = 1 : tensor<1x6x8xf32>, tensor<6x4x3xf32> -> tensor<1x4x8xf32>
  return
}
