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
