// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @attention_c1(%q: tensor<1x6x5x4xf32>, %k: tensor<1x4x7x4xf32>, %v: tensor<1x4x7x8xf32>) {
  // expected-error@+1 {{'nn.attention' op expected the key-value heads to divide the 6 query heads, found 4}}
  %0 = nn.attention %q, %k, %v scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x4x7x4xf32>, tensor<1x4x7x8xf32>) -> tensor<1x6x5x8xf32>
  return
}

// -----

func.func @attention_c1_rank(%q: tensor<6x5x4xf32>, %k: tensor<1x6x7x4xf32>, %v: tensor<1x6x7x8xf32>) {
  // expected-error@+1 {{'nn.attention' op expected q, k and v of rank 4, found 3, 4 and 4}}
  %0 = nn.attention %q, %k, %v scale = 1.0 : (tensor<6x5x4xf32>, tensor<1x6x7x4xf32>, tensor<1x6x7x8xf32>) -> tensor<1x6x5x8xf32>
  return
}

// -----

func.func @attention_c1_key(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x3xf32>, %v: tensor<1x3x7x8xf32>) {
  // expected-error@+1 {{'nn.attention' op expected k of shape [1, 3, 7, 4], found [1, 3, 7, 3]}}
  %0 = nn.attention %q, %k, %v scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x3xf32>, tensor<1x3x7x8xf32>) -> tensor<1x6x5x8xf32>
  return
}

// -----

func.func @attention_c1_value(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x6x8xf32>) {
  // expected-error@+1 {{'nn.attention' op expected v of shape [1, 3, 7, 8], found [1, 3, 6, 8]}}
  %0 = nn.attention %q, %k, %v scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x6x8xf32>) -> tensor<1x6x5x8xf32>
  return
}

// -----

func.func @attention_c1_result(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>) {
  // expected-error@+1 {{'nn.attention' op expected a result of shape [1, 6, 5, 8], found [1, 6, 5, 4]}}
  %0 = nn.attention %q, %k, %v scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>) -> tensor<1x6x5x4xf32>
  return
}

// -----

func.func @attention_c2(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %b: tensor<1x3x1x7xf32>) {
  // expected-error@+1 {{'nn.attention' op expected a bias whose sizes are 1 or those of [1, 6, 5, 7], found [1, 3, 1, 7]}}
  %0 = nn.attention %q, %k, %v, %b scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<1x3x1x7xf32>) -> tensor<1x6x5x8xf32>
  return
}

// -----

func.func @attention_c2_rank(%q: tensor<1x6x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<1x3x7x8xf32>, %b: tensor<5x7xf32>) {
  // expected-error@+1 {{'nn.attention' op expected a bias whose sizes are 1 or those of [1, 6, 5, 7], found [5, 7]}}
  %0 = nn.attention %q, %k, %v, %b scale = 1.0 : (tensor<1x6x5x4xf32>, tensor<1x3x7x4xf32>, tensor<1x3x7x8xf32>, tensor<5x7xf32>) -> tensor<1x6x5x8xf32>
  return
}

// -----

func.func @attention_c3(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>) {
  // expected-error@+1 {{'nn.attention' op expected 'window' of at least 1, found 0}}
  %r:1 = nn.attention %q, %k, %v scale = 1.0 causal_offset = 0 window = 0 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>) -> tensor<1x2x5x4xf32>
  return
}

// -----

func.func @attention_c3_window(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>) {
  // expected-error@+1 {{'nn.attention' op expected 'causal_offset', which 'window' requires, found none}}
  %r:1 = nn.attention %q, %k, %v scale = 1.0 window = 2 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>) -> tensor<1x2x5x4xf32>
  return
}

// -----

func.func @attention_c3_shift(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>, %s: tensor<i64>) {
  // expected-error@+1 {{'nn.attention' op expected 'causal_offset', which 'shift' requires, found none}}
  %r:1 = nn.attention %q, %k, %v shift(%s) scale = 1.0 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<i64>) -> tensor<1x2x5x4xf32>
  return
}

// -----

func.func @attention_c3_scalar(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>, %s: tensor<1xi64>) {
  // expected-error@+1 {{'nn.attention' op expected shift of type 'tensor<i64>', found 'tensor<1xi64>'}}
  %r:1 = nn.attention %q, %k, %v shift(%s) scale = 1.0 causal_offset = 0 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1xi64>) -> tensor<1x2x5x4xf32>
  return
}

// -----

func.func @attention_c4(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>, %i: tensor<1x5xi32>, %j: tensor<1x5xi32>) {
  // expected-error@+1 {{'nn.attention' op expected k_segments of shape [1, 7], found [1, 5]}}
  %r:1 = nn.attention %q, %k, %v segments(%i, %j) scale = 1.0 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x5xi32>, tensor<1x5xi32>) -> tensor<1x2x5x4xf32>
  return
}

// -----

func.func @attention_c5(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x4xf32>) {
  // expected-error@+1 {{'nn.attention' op expected lse of type 'tensor<1x2x5xf32>', found 'tensor<1x2x5xf64>'}}
  %r:2 = nn.attention %q, %k, %v scale = 1.0 : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>) -> (tensor<1x2x5x4xf32>, tensor<1x2x5xf64>)
  return
}

// -----

func.func @attention_c6(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>) {
  // expected-error@+1 {{'nn.attention' op expected 'window', which 'sinks' requires, found none}}
  %0 = nn.attention %q, %k, %v scale = 1.0 causal_offset = 0 sinks = 1 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return
}

// -----

func.func @attention_c6_none(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>) {
  // expected-error@+1 {{'nn.attention' op expected 'sinks' of at least 1, found 0}}
  %0 = nn.attention %q, %k, %v scale = 1.0 causal_offset = 0 window = 2 sinks = 0 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return
}

// -----

func.func @attention_c7(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>) {
  // expected-error@+1 {{'nn.attention' op expected both 'blocks' and 'block_size', found 'block_size' only}}
  %0 = nn.attention %q, %k, %v scale = 1.0 block_size = 2 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return
}

// -----

func.func @attention_c7_size(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>) {
  // expected-error@+1 {{'nn.attention' op expected 'block_size' of at least 1, found 0}}
  %0 = nn.attention %q, %k, %v scale = 1.0 blocks = dense<true> : tensor<1x2x2xi1> block_size = 0 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return
}

// -----

func.func @attention_c7_table(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>) {
  // expected-error@+1 {{'nn.attention' op expected 'blocks' of [2 or 1, 2, 2] for 4 queries and 4 keys in blocks of 2, found 'tensor<1x2x3xi1>'}}
  %0 = nn.attention %q, %k, %v scale = 1.0 blocks = dense<true> : tensor<1x2x3xi1> block_size = 2 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return
}
