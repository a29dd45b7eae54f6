// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @attention_grad_c1(%q: tensor<1x6x5x4xf32>, %k: tensor<1x4x7x4xf32>, %v: tensor<1x4x7x8xf32>, %y: tensor<1x6x5x8xf32>, %g: tensor<1x6x5x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected the key-value heads to divide the 6 query heads, found 4}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x4x7x4xf32>, tensor<1x4x7x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x5x8xf32>) -> (tensor<1x6x5x4xf32>, tensor<1x4x7x4xf32>, tensor<1x4x7x8xf32>)
  return
}

// -----

func.func @attention_grad_c1_result(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %y: tensor<1x6x5x4xf32>, %g: tensor<1x6x5x4xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected a result of shape [1, 6, 5, 8], found [1, 6, 5, 4]}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x4xf32>, tensor<1x6x5x4xf32>) -> (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>)
  return
}

// -----

func.func @attention_grad_c1_result_grad(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %y: tensor<1x6x5x8xf32>, %g: tensor<1x6x5x4xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected a result_grad of type 'tensor<1x6x5x8xf32>', found 'tensor<1x6x5x4xf32>'}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x5x4xf32>) -> (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>)
  return
}

// -----

func.func @attention_grad_c2(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %y: tensor<1x6x5x8xf32>, %g: tensor<1x6x5x8xf32>, %b: tensor<1x3x1x7xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected a bias whose sizes are 1 or those of [1, 6, 5, 7], found [1, 3, 1, 7]}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g, %b scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x5x8xf32>, tensor<1x3x1x7xf32>) -> (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>)
  return
}

// -----

func.func @attention_grad_c3(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %y: tensor<1x6x5x8xf32>, %g: tensor<1x6x5x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected k_grad of type 'tensor<1x3x7x4xf32>', found 'tensor<1x3x7x8xf32>'}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x5x8xf32>) -> (tensor<1x6x5x4xf32>, tensor<1x3x7x8xf32>, tensor<1x3x7x8xf32>)
  return
}

// -----

func.func @attention_grad_c3_bias(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %y: tensor<1x6x5x8xf32>, %g: tensor<1x6x5x8xf32>, %b: tensor<1x6x1x7xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected bias_grad of type 'tensor<1x6x1x7xf32>', found 'tensor<1x6x5x7xf32>'}}
  %r:4 = nn.attention_grad %q, %k, %v, %y, %g, %b scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x1x7xf32>) -> (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x7xf32>)
  return
}

// -----

func.func @attention_grad_c3_no_bias(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %y: tensor<1x6x5x8xf32>, %g: tensor<1x6x5x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected three results, as there is no bias, found four}}
  %r:4 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x5x8xf32>) -> (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x7xf32>)
  return
}
