// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @reduce_window_grad_c1(%g: tensor<2x4xf32>, %x: tensor<2x8xf32>) {
  // expected-error@+1 {{'nn.reduce_window_grad' op expected kind sum, max or min, found prod}}
  %0 = nn.reduce_window_grad prod %g, %x window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @reduce_window_grad_c1_absent(%g: tensor<2x4xf32>) {
  // expected-error@+1 {{'nn.reduce_window_grad' op expected an input, which min needs, found none}}
  %0 = nn.reduce_window_grad min %g window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : (tensor<2x4xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @reduce_window_grad_c1_input(%g: tensor<2x4xf32>, %x: tensor<2x9xf32>) {
  // expected-error@+1 {{'nn.reduce_window_grad' op expected an input of type 'tensor<2x8xf32>', found 'tensor<2x9xf32>'}}
  %0 = nn.reduce_window_grad max %g, %x window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : (tensor<2x4xf32>, tensor<2x9xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @reduce_window_grad_c2(%g: tensor<2x4xf32>) {
  // expected-error@+1 {{'nn.reduce_window_grad' op expected 'window' to have 2 entries of at least 1, found [2]}}
  %0 = nn.reduce_window_grad sum %g window = [2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : (tensor<2x4xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @reduce_window_grad_c2_low(%g: tensor<2x4xf32>) {
  // expected-error@+1 {{'nn.reduce_window_grad' op expected 'low' to have 2 entries of at least 0, found [0, -1]}}
  %0 = nn.reduce_window_grad sum %g window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, -1] high = [0, 0] : (tensor<2x4xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @reduce_window_grad_c3(%g: tensor<2x4xf32>) {
  // expected-error@+1 {{'nn.reduce_window_grad' op expected a result_grad of type 'tensor<2x5xf32>', found 'tensor<2x4xf32>'}}
  %0 = nn.reduce_window_grad sum %g window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 2] high = [0, 0] : (tensor<2x4xf32>) -> tensor<2x8xf32>
  return
}
