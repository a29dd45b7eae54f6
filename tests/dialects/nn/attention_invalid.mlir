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
