// RUN: partita-opt %s --split-input-file --partita-raise-composites | FileCheck %s

// Sliding windows, as exporters of Mistral, Gemma and ModernBERT write them.

// A causal window of two keys, as a constant bias of whole attention.
// CHECK-LABEL: func @window_bias
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 causal_offset = 0 window = 2 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>)
func.func @window_bias(%q: tensor<1x2x4x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %bias = arith.constant dense<[[[[0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000], [0xFF800000, 0.0, 0.0, 0xFF800000], [0xFF800000, 0xFF800000, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32>
  %y = nn.attention %q, %k, %v, %bias scale = 5.0e-1 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// Both sides: |i - j| <= 1, computed from positions.
// CHECK-LABEL: func @two_sided
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 1.000000e+00 causal_offset = 1 window = 3 : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>)
func.func @two_sided(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32> {
  %one = arith.constant dense<1> : tensor<5x5xi64>
  %hidden = arith.constant dense<-3.40282347E+38> : tensor<1x2x5x5xf32>
  %i = nn.iota dim = 0 : tensor<5x5xi64>
  %j = nn.iota dim = 1 : tensor<5x5xi64>
  %difference = arith.subi %i, %j : tensor<5x5xi64>
  %distance = math.absi %difference : tensor<5x5xi64>
  %near = arith.cmpi sle, %distance, %one : tensor<5x5xi64>
  %near_b = nn.broadcast %near dims = [2, 3] : tensor<5x5xi1> -> tensor<1x2x5x5xi1>
  %scores = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x5x5xf32>
  %masked = arith.select %near_b, %scores, %hidden : tensor<1x2x5x5xi1>, tensor<1x2x5x5xf32>
  %p = nn.softmax %masked axis = 3 : tensor<1x2x5x5xf32>
  %y = nn.dot_general %p, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x2x5x5xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x5x4xf32>
  return %y : tensor<1x2x5x4xf32>
}

// -----

// A causal mask and a mask of old keys: their intersection is the window.
// CHECK-LABEL: func @causal_and_old
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 1.000000e+00 causal_offset = 1 window = 2 : (tensor<1x2x3x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>)
func.func @causal_and_old(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>) -> tensor<1x2x3x4xf32> {
  %causal = arith.constant dense<[[[[0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0, 0.0]]]]> : tensor<1x1x3x4xf32>
  %old = arith.constant dense<[[[[0.0, 0.0, 0.0, 0.0], [0xFF800000, 0.0, 0.0, 0.0], [0xFF800000, 0xFF800000, 0.0, 0.0]]]]> : tensor<1x1x3x4xf32>
  %causal_b = nn.broadcast %causal dims = [0, 1, 2, 3] : tensor<1x1x3x4xf32> -> tensor<1x2x3x4xf32>
  %old_b = nn.broadcast %old dims = [0, 1, 2, 3] : tensor<1x1x3x4xf32> -> tensor<1x2x3x4xf32>
  %scores = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<1x2x3x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x3x4xf32>
  %0 = arith.addf %scores, %causal_b : tensor<1x2x3x4xf32>
  %1 = arith.addf %0, %old_b : tensor<1x2x3x4xf32>
  %p = nn.softmax %1 axis = 3 : tensor<1x2x3x4xf32>
  %y = nn.dot_general %p, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x2x3x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// Old keys alone: a causal offset that hides nothing goes with the window.
// CHECK-LABEL: func @old_alone
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 causal_offset = 2 window = 3 : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>)
func.func @old_alone(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %bias = arith.constant dense<[[[[0.0, 0.0, 0.0], [0xFF800000, 0.0, 0.0], [0xFF800000, 0xFF800000, 0.0]]]]> : tensor<1x1x3x3xf32>
  %y = nn.attention %q, %k, %v, %bias scale = 5.0e-1 : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x1x3x3xf32>) -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// A constant that has been broadcast over the batch; both matrices are equal.
// CHECK-LABEL: func @window_of_a_batch
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 causal_offset = 0 window = 1 :
func.func @window_of_a_batch(%q: tensor<2x2x2x4xf32>) -> tensor<2x2x2x4xf32> {
  %bias = arith.constant dense<[[[[0.0, 0xFF800000], [0xFF800000, 0.0]]], [[[0.0, 0xFF800000], [0xFF800000, 0.0]]]]> : tensor<2x1x2x2xf32>
  %y = nn.attention %q, %q, %q, %bias scale = 5.0e-1 : (tensor<2x2x2x4xf32>, tensor<2x2x2x4xf32>, tensor<2x2x2x4xf32>, tensor<2x1x2x2xf32>) -> tensor<2x2x2x4xf32>
  return %y : tensor<2x2x2x4xf32>
}

// -----

// Batch elements with different masks keep the bias.
// CHECK-LABEL: func @different_masks
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 :
func.func @different_masks(%q: tensor<2x2x2x4xf32>) -> tensor<2x2x2x4xf32> {
  %bias = arith.constant dense<[[[[0.0, 0xFF800000], [0xFF800000, 0.0]]], [[[0.0, 0xFF800000], [0.0, 0.0]]]]> : tensor<2x1x2x2xf32>
  %y = nn.attention %q, %q, %q, %bias scale = 5.0e-1 : (tensor<2x2x2x4xf32>, tensor<2x2x2x4xf32>, tensor<2x2x2x4xf32>, tensor<2x1x2x2xf32>) -> tensor<2x2x2x4xf32>
  return %y : tensor<2x2x2x4xf32>
}

// -----

// A window and padding: the window becomes attributes, the padding stays as a bias.
// CHECK-LABEL: func @window_and_padding
// CHECK-SAME: %{{.*}}: tensor<1x4xi1>
// CHECK: %[[BIAS:.*]] = arith.select %{{.*}} : tensor<1x1x1x4xi1>, tensor<1x1x1x4xf32>
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[BIAS]] scale = 5.000000e-01 causal_offset = 0 window = 2 :
func.func @window_and_padding(%q: tensor<1x2x4x4xf32>, %real: tensor<1x4xi1>) -> tensor<1x2x4x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x1x4x4xf32>
  %lowest = arith.constant dense<0xFF800000> : tensor<1x1x4x4xf32>
  %two = arith.constant dense<2> : tensor<4x4xi64>
  %i = nn.iota dim = 0 : tensor<4x4xi64>
  %j = nn.iota dim = 1 : tensor<4x4xi64>
  %causal = arith.cmpi sle, %j, %i : tensor<4x4xi64>
  %end = arith.addi %j, %two : tensor<4x4xi64>
  %recent = arith.cmpi slt, %i, %end : tensor<4x4xi64>
  %band = arith.andi %causal, %recent : tensor<4x4xi1>
  %band_b = nn.broadcast %band dims = [2, 3] : tensor<4x4xi1> -> tensor<1x1x4x4xi1>
  %real_b = nn.broadcast %real dims = [0, 3] : tensor<1x4xi1> -> tensor<1x1x4x4xi1>
  %visible = arith.andi %band_b, %real_b : tensor<1x1x4x4xi1>
  %bias = arith.select %visible, %zero, %lowest : tensor<1x1x4x4xi1>, tensor<1x1x4x4xf32>
  %y = nn.attention %q, %q, %q, %bias scale = 5.0e-1 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}
