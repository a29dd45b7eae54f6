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

// -----

// Joined conditions that repeat one another are not taken apart 2^24 times.
// CHECK-LABEL: @many_conditions
// CHECK: nn.attention
func.func @many_conditions(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %m: tensor<4x4xi1>, %b: tensor<4x4xi1>, %c: tensor<4x4xi1>) -> tensor<1x2x4x8xf32> {
  %z = arith.constant dense<0.0> : tensor<4x4xf32>
  %inf = arith.constant dense<0xFF800000> : tensor<4x4xf32>
  %x0 = arith.andi %m, %b : tensor<4x4xi1>
  %y0 = arith.andi %m, %c : tensor<4x4xi1>
  %a0 = arith.andi %x0, %y0 : tensor<4x4xi1>
  %x1 = arith.andi %a0, %b : tensor<4x4xi1>
  %y1 = arith.andi %a0, %c : tensor<4x4xi1>
  %a1 = arith.andi %x1, %y1 : tensor<4x4xi1>
  %x2 = arith.andi %a1, %b : tensor<4x4xi1>
  %y2 = arith.andi %a1, %c : tensor<4x4xi1>
  %a2 = arith.andi %x2, %y2 : tensor<4x4xi1>
  %x3 = arith.andi %a2, %b : tensor<4x4xi1>
  %y3 = arith.andi %a2, %c : tensor<4x4xi1>
  %a3 = arith.andi %x3, %y3 : tensor<4x4xi1>
  %x4 = arith.andi %a3, %b : tensor<4x4xi1>
  %y4 = arith.andi %a3, %c : tensor<4x4xi1>
  %a4 = arith.andi %x4, %y4 : tensor<4x4xi1>
  %x5 = arith.andi %a4, %b : tensor<4x4xi1>
  %y5 = arith.andi %a4, %c : tensor<4x4xi1>
  %a5 = arith.andi %x5, %y5 : tensor<4x4xi1>
  %x6 = arith.andi %a5, %b : tensor<4x4xi1>
  %y6 = arith.andi %a5, %c : tensor<4x4xi1>
  %a6 = arith.andi %x6, %y6 : tensor<4x4xi1>
  %x7 = arith.andi %a6, %b : tensor<4x4xi1>
  %y7 = arith.andi %a6, %c : tensor<4x4xi1>
  %a7 = arith.andi %x7, %y7 : tensor<4x4xi1>
  %x8 = arith.andi %a7, %b : tensor<4x4xi1>
  %y8 = arith.andi %a7, %c : tensor<4x4xi1>
  %a8 = arith.andi %x8, %y8 : tensor<4x4xi1>
  %x9 = arith.andi %a8, %b : tensor<4x4xi1>
  %y9 = arith.andi %a8, %c : tensor<4x4xi1>
  %a9 = arith.andi %x9, %y9 : tensor<4x4xi1>
  %x10 = arith.andi %a9, %b : tensor<4x4xi1>
  %y10 = arith.andi %a9, %c : tensor<4x4xi1>
  %a10 = arith.andi %x10, %y10 : tensor<4x4xi1>
  %x11 = arith.andi %a10, %b : tensor<4x4xi1>
  %y11 = arith.andi %a10, %c : tensor<4x4xi1>
  %a11 = arith.andi %x11, %y11 : tensor<4x4xi1>
  %x12 = arith.andi %a11, %b : tensor<4x4xi1>
  %y12 = arith.andi %a11, %c : tensor<4x4xi1>
  %a12 = arith.andi %x12, %y12 : tensor<4x4xi1>
  %x13 = arith.andi %a12, %b : tensor<4x4xi1>
  %y13 = arith.andi %a12, %c : tensor<4x4xi1>
  %a13 = arith.andi %x13, %y13 : tensor<4x4xi1>
  %x14 = arith.andi %a13, %b : tensor<4x4xi1>
  %y14 = arith.andi %a13, %c : tensor<4x4xi1>
  %a14 = arith.andi %x14, %y14 : tensor<4x4xi1>
  %x15 = arith.andi %a14, %b : tensor<4x4xi1>
  %y15 = arith.andi %a14, %c : tensor<4x4xi1>
  %a15 = arith.andi %x15, %y15 : tensor<4x4xi1>
  %x16 = arith.andi %a15, %b : tensor<4x4xi1>
  %y16 = arith.andi %a15, %c : tensor<4x4xi1>
  %a16 = arith.andi %x16, %y16 : tensor<4x4xi1>
  %x17 = arith.andi %a16, %b : tensor<4x4xi1>
  %y17 = arith.andi %a16, %c : tensor<4x4xi1>
  %a17 = arith.andi %x17, %y17 : tensor<4x4xi1>
  %x18 = arith.andi %a17, %b : tensor<4x4xi1>
  %y18 = arith.andi %a17, %c : tensor<4x4xi1>
  %a18 = arith.andi %x18, %y18 : tensor<4x4xi1>
  %x19 = arith.andi %a18, %b : tensor<4x4xi1>
  %y19 = arith.andi %a18, %c : tensor<4x4xi1>
  %a19 = arith.andi %x19, %y19 : tensor<4x4xi1>
  %x20 = arith.andi %a19, %b : tensor<4x4xi1>
  %y20 = arith.andi %a19, %c : tensor<4x4xi1>
  %a20 = arith.andi %x20, %y20 : tensor<4x4xi1>
  %x21 = arith.andi %a20, %b : tensor<4x4xi1>
  %y21 = arith.andi %a20, %c : tensor<4x4xi1>
  %a21 = arith.andi %x21, %y21 : tensor<4x4xi1>
  %x22 = arith.andi %a21, %b : tensor<4x4xi1>
  %y22 = arith.andi %a21, %c : tensor<4x4xi1>
  %a22 = arith.andi %x22, %y22 : tensor<4x4xi1>
  %x23 = arith.andi %a22, %b : tensor<4x4xi1>
  %y23 = arith.andi %a22, %c : tensor<4x4xi1>
  %a23 = arith.andi %x23, %y23 : tensor<4x4xi1>
  %s = arith.select %a23, %z, %inf : tensor<4x4xi1>, tensor<4x4xf32>
  %bias = nn.broadcast %s dims = [2, 3] : tensor<4x4xf32> -> tensor<1x2x4x4xf32>
  %o = nn.attention %q, %k, %v, %bias scale = 1.0 : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x8xf32>
  return %o : tensor<1x2x4x8xf32>
}
