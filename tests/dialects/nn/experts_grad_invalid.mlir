// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @experts_grad_c1(%x: tensor<2x5x4xf32>, %ids: tensor<2x4x2xi64>, %p: tensor<2x5x2xf32>, %y: tensor<2x5x4xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts_grad' op expected ids with the sizes [2, 5] and one more, found [2, 4, 2]}}
  %r:4 = nn.experts_grad %x[%ids], %p, %y up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x4x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>
  return
}

// -----

func.func @experts_grad_c2(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %y: tensor<2x5x4xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x5xf32>) {
  // expected-error@+1 {{'nn.experts_grad' op expected down of shape [3, 4, 6], found [3, 4, 5]}}
  %r:4 = nn.experts_grad %x[%ids], %p, %y up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x5xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x4x5xf32>
  return
}

// -----

func.func @experts_grad_c3(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %y: tensor<2x5x6xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts_grad' op expected result_grad of shape [2, 5, 4], found [2, 5, 6]}}
  %r:4 = nn.experts_grad %x[%ids], %p, %y up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x6xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>
  return
}

// -----

func.func @experts_grad_c4(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %y: tensor<2x5x4xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts_grad' op expected weights_grad of type 'tensor<2x5x2xf32>', found 'tensor<2x5x4xf32>'}}
  %r:4 = nn.experts_grad %x[%ids], %p, %y up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x4xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>
  return
}

// -----

func.func @experts_grad_c4_count(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %y: tensor<2x5x4xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts_grad' op expected 2 gradients of parameters, found 1}}
  %r:3 = nn.experts_grad %x[%ids], %p, %y up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>
  return
}

// -----

func.func @experts_grad_c4_parameter(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %y: tensor<2x5x4xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>) {
  // expected-error@+1 {{'nn.experts_grad' op expected a parameter's gradient of type 'tensor<3x6x4xf32>', found 'tensor<3x4x6xf32>'}}
  %r:4 = nn.experts_grad %x[%ids], %p, %y up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x4x6xf32>, tensor<3x6x4xf32>
  return
}
