// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @dequantize_c1(%q: tensor<i8>, %s: tensor<f32>) {
  // expected-error@+1 {{'nn.dequantize' op expected packed of rank 1 or more, found 0}}
  %0 = nn.dequantize %q scale(%s) : (tensor<i8>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @dequantize_c1_scale(%q: tensor<6x4x16xi8>, %s: tensor<6xf32>) {
  // expected-error@+1 {{'nn.dequantize' op expected scale of shape [6, 4], found [6]}}
  %0 = nn.dequantize %q scale(%s) : (tensor<6x4x16xi8>, tensor<6xf32>) -> tensor<6x4x32xf32>
  return
}

// -----

func.func @dequantize_c1_result(%q: tensor<6x16xi8>, %s: tensor<6xf32>) {
  // expected-error@+1 {{'nn.dequantize' op expected a result of shape [6, 32], found [6, 16]}}
  %0 = nn.dequantize %q scale(%s) : (tensor<6x16xi8>, tensor<6xf32>) -> tensor<6x16xf32>
  return
}

// -----

func.func @dequantize_c1_zero(%q: tensor<6x16xi8>, %s: tensor<6xf32>, %z: tensor<1xi8>) {
  // expected-error@+1 {{'nn.dequantize' op expected zero of shape [6], found [1]}}
  %0 = nn.dequantize %q scale(%s) zero(%z) : (tensor<6x16xi8>, tensor<6xf32>, tensor<1xi8>) -> tensor<6x32xf32>
  return
}

// -----

func.func @dequantize_c2(%q: tensor<6x16xi32>, %s: tensor<6xf32>) {
  // expected-error@+1 {{'nn.dequantize' op expected packed of i8, found 'tensor<6x16xi32>'}}
  %0 = nn.dequantize %q scale(%s) : (tensor<6x16xi32>, tensor<6xf32>) -> tensor<6x32xf32>
  return
}

// -----

func.func @dequantize_c2_zero(%q: tensor<6x16xi8>, %s: tensor<6xf32>, %z: tensor<6xi32>) {
  // expected-error@+1 {{'nn.dequantize' op expected zero of i8, found 'tensor<6xi32>'}}
  %0 = nn.dequantize %q scale(%s) zero(%z) : (tensor<6x16xi8>, tensor<6xf32>, tensor<6xi32>) -> tensor<6x32xf32>
  return
}

// -----

func.func @dequantize_c2_result(%q: tensor<6x16xi8>, %s: tensor<6xf32>) {
  // expected-error@+1 {{'nn.dequantize' op expected equal element types, found 'f32' and 'bf16'}}
  %0 = nn.dequantize %q scale(%s) : (tensor<6x16xi8>, tensor<6xf32>) -> tensor<6x32xbf16>
  return
}
