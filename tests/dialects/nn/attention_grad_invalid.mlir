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

func.func @attention_grad_c8(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %y: tensor<1x6x5x8xf32>, %g: tensor<1x6x5x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected k_grad of type 'tensor<1x3x7x4xf32>', found 'tensor<1x3x7x8xf32>'}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x5x8xf32>) -> (tensor<1x6x5x4xf32>, tensor<1x3x7x8xf32>, tensor<1x3x7x8xf32>)
  return
}

// -----

func.func @attention_grad_c8_bias(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %y: tensor<1x6x5x8xf32>, %g: tensor<1x6x5x8xf32>, %b: tensor<1x6x1x7xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected bias_grad of type 'tensor<1x6x1x7xf32>', found 'tensor<1x6x5x7xf32>'}}
  %r:4 = nn.attention_grad %q, %k, %v, %y, %g, %b scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x1x7xf32>) -> (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x7xf32>)
  return
}

// -----

func.func @attention_grad_c8_no_bias(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %y: tensor<1x6x5x8xf32>, %g: tensor<1x6x5x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected three results, as there is no bias, found four}}
  %r:4 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x8xf32>, tensor<1x6x5x8xf32>) -> (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x6x5x7xf32>)
  return
}

// -----

func.func @attention_grad_c3(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>, %y: tensor<1x2x5x4xf32>, %g: tensor<1x2x5x4xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected 'window' of at least 1, found 0}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 causal_offset = 0 window = 0 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>)
  return
}

// -----

func.func @attention_grad_c3_window(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>, %y: tensor<1x2x5x4xf32>, %g: tensor<1x2x5x4xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected 'causal_offset', which 'window' requires, found none}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 window = 2 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>)
  return
}

// -----

func.func @attention_grad_c3_shift(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>, %y: tensor<1x2x5x4xf32>, %g: tensor<1x2x5x4xf32>, %s: tensor<i64>) {
  // expected-error@+1 {{'nn.attention_grad' op expected 'causal_offset', which 'shift' requires, found none}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g shift(%s) scale = 1.0 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<i64>) -> (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>)
  return
}

// -----

func.func @attention_grad_c3_scalar(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>, %y: tensor<1x2x5x4xf32>, %g: tensor<1x2x5x4xf32>, %s: tensor<1xi64>) {
  // expected-error@+1 {{'nn.attention_grad' op expected shift of type 'tensor<i64>', found 'tensor<1xi64>'}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g shift(%s) scale = 1.0 causal_offset = 0 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1xi64>) -> (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>)
  return
}

// -----

func.func @attention_grad_c4(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>, %y: tensor<1x2x5x4xf32>, %g: tensor<1x2x5x4xf32>, %i: tensor<1x5xi32>, %j: tensor<1x5xi32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected k_segments of shape [1, 7], found [1, 5]}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g segments(%i, %j) scale = 1.0 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x5xi32>, tensor<1x5xi32>) -> (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>)
  return
}

// -----

func.func @attention_grad_c5(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>, %y: tensor<1x2x5x4xf32>, %g: tensor<1x2x5x4xf32>, %l: tensor<1x2x7xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected lse of type 'tensor<1x2x5xf32>', found 'tensor<1x2x7xf32>'}}
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g lse(%l) scale = 1.0 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x7xf32>) -> (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>)
  return
}

// -----

func.func @attention_grad_c6(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>, %y: tensor<1x2x4x4xf32>, %g: tensor<1x2x4x4xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected 'window', which 'sinks' requires, found none}}
  %0:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 causal_offset = 0 sinks = 1 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>)
  return
}

// -----

func.func @attention_grad_c6_none(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>, %y: tensor<1x2x4x4xf32>, %g: tensor<1x2x4x4xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected 'sinks' of at least 1, found 0}}
  %0:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 causal_offset = 0 window = 2 sinks = 0 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>)
  return
}

// -----

func.func @attention_grad_c7(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>, %y: tensor<1x2x4x4xf32>, %g: tensor<1x2x4x4xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected both 'blocks' and 'block_size', found 'block_size' only}}
  %0:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 block_size = 2 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>)
  return
}

// -----

func.func @attention_grad_c7_size(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>, %y: tensor<1x2x4x4xf32>, %g: tensor<1x2x4x4xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected 'block_size' of at least 1, found 0}}
  %0:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 blocks = dense<true> : tensor<1x2x2xi1> block_size = 0 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>)
  return
}

// -----

func.func @attention_grad_c7_table(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>, %y: tensor<1x2x4x4xf32>, %g: tensor<1x2x4x4xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected 'blocks' of [2 or 1, 2, 2] for 4 queries and 4 keys in blocks of 2, found 'tensor<1x2x3xi1>'}}
  %0:3 = nn.attention_grad %q, %k, %v, %y, %g scale = 1.0 blocks = dense<true> : tensor<1x2x3xi1> block_size = 2 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>)
  return
}
