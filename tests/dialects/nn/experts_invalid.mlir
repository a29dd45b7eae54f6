// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @experts_c1(%x: tensor<2x5x4xf32>, %ids: tensor<2x4x2xi64>, %p: tensor<2x5x2xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts' op expected ids with the sizes [2, 5] and one more, found [2, 4, 2]}}
  %y = nn.experts %x[%ids], %p up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x4x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @experts_c1_weights(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x3xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts' op expected weights of shape [2, 5, 2], found [2, 5, 3]}}
  %y = nn.experts %x[%ids], %p up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x3xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @experts_c1_rank(%x: tensor<f32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts' op expected x of rank 1 or more, found 0}}
  %y = nn.experts %x[%ids], %p up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<f32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @experts_c2(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %u: tensor<3x6x5xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts' op expected up of shape [3, 6, 4], found [3, 6, 5]}}
  %y = nn.experts %x[%ids], %p up(%u : tensor<3x6x5xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @experts_c2_rank(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %u: tensor<6x4xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts' op expected up of shape [X, M, E], found [6, 4]}}
  %y = nn.experts %x[%ids], %p up(%u : tensor<6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @experts_c2_down(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %u: tensor<3x6x4xf32>, %d: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'nn.experts' op expected down of shape [3, 4, 6], found [2, 4, 6]}}
  %y = nn.experts %x[%ids], %p up(%u : tensor<3x6x4xf32>) down(%d : tensor<2x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @experts_c2_gate(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>, %g: tensor<3x5x4xf32>) {
  // expected-error@+1 {{'nn.experts' op expected gate of shape [3, 6, 4], found [3, 5, 4]}}
  %y = nn.experts %x[%ids], %p gate(%g : tensor<3x5x4xf32>) up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @experts_c2_gate_bias(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>, %b: tensor<3x6xf32>) {
  // expected-error@+1 {{'nn.experts' op expected a gate, as there is a gate_bias}}
  %y = nn.experts %x[%ids], %p up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) gate_bias(%b : tensor<3x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @experts_c2_bias(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>, %b: tensor<3x6xf32>) {
  // expected-error@+1 {{'nn.experts' op expected down_bias of shape [3, 4], found [3, 6]}}
  %y = nn.experts %x[%ids], %p up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) down_bias(%b : tensor<3x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @experts_c3(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts' op expected a result of shape [2, 5, 4], found [2, 5, 6]}}
  %y = nn.experts %x[%ids], %p up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x6xf32>
  return
}

// -----

func.func @experts_c3_type(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %u: tensor<3x6x4xbf16>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts' op expected equal element types, found 'f32' and 'bf16'}}
  %y = nn.experts %x[%ids], %p up(%u : tensor<3x6x4xbf16>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return
}
