// RUN: partita-opt %s --split-input-file --partita-raise-composites | FileCheck %s

// BERT: scores divided by a constant, an additive mask repeated over heads and queries, k's two transposes merged into one.
// CHECK-LABEL: func @divided_scores
// CHECK-SAME: (%[[Q:.*]]: tensor<2x3x5x4xf32>, %[[K0:.*]]: tensor<2x6x3x4xf32>, %[[V:.*]]: tensor<2x3x6x4xf32>, %[[M:.*]]: tensor<2x1x1x6xf32>)
// CHECK: %[[K:.*]] = nn.transpose %[[K0]] perm = [0, 2, 1, 3]
// CHECK: %[[Y:.*]] = nn.attention %[[Q]], %[[K]], %[[V]], %[[M]] scale = 5.000000e-01 :
// CHECK: return %[[Y]]
func.func @divided_scores(%q: tensor<2x3x5x4xf32>, %k: tensor<2x6x3x4xf32>, %v: tensor<2x3x6x4xf32>, %mask: tensor<2x1x1x6xf32>) -> tensor<2x3x5x4xf32> {
  %root = arith.constant dense<2.0> : tensor<2x3x5x6xf32>
  %kt = nn.transpose %k perm = [0, 2, 3, 1] : tensor<2x6x3x4xf32> -> tensor<2x3x4x6xf32>
  %scores = nn.dot_general %q, %kt batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x3x5x4xf32>, tensor<2x3x4x6xf32> -> tensor<2x3x5x6xf32>
  %scaled = arith.divf %scores, %root : tensor<2x3x5x6xf32>
  %mask_b = nn.broadcast %mask dims = [0, 1, 2, 3] : tensor<2x1x1x6xf32> -> tensor<2x3x5x6xf32>
  %masked = arith.addf %scaled, %mask_b : tensor<2x3x5x6xf32>
  %p = nn.softmax %masked axis = 3 : tensor<2x3x5x6xf32>
  %y = nn.dot_general %p, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x3x5x6xf32>, tensor<2x3x6x4xf32> -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// -----

// GPT-2: a constant causal mask by select.
// CHECK-LABEL: func @causal_select
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 causal_offset = 0 : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>)
func.func @causal_select(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %visible = arith.constant dense<[[[[true, false, false], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>
  %root = arith.constant dense<2.0> : tensor<1x2x3x3xf32>
  %hidden = arith.constant dense<-1.0e4> : tensor<1x2x3x3xf32>
  %scores = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x3xf32>
  %scaled = arith.divf %scores, %root : tensor<1x2x3x3xf32>
  %visible_b = nn.broadcast %visible dims = [0, 1, 2, 3] : tensor<1x1x3x3xi1> -> tensor<1x2x3x3xi1>
  %masked = arith.select %visible_b, %scaled, %hidden : tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>
  %p = nn.softmax %masked axis = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot_general %p, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// A causal mask from a comparison of positions, with two past keys before the first query.
// CHECK-LABEL: func @causal_positions
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 1.000000e+00 causal_offset = 2 : (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>)
func.func @causal_positions(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32> {
  %two = arith.constant dense<2> : tensor<3x5xi64>
  %hidden = arith.constant dense<0xFF800000> : tensor<1x2x3x5xf32>
  %i = nn.iota dim = 0 : tensor<3x5xi64>
  %last = arith.addi %i, %two : tensor<3x5xi64>
  %j = nn.iota dim = 1 : tensor<3x5xi64>
  %future = arith.cmpi sgt, %j, %last : tensor<3x5xi64>
  %future_b = nn.broadcast %future dims = [2, 3] : tensor<3x5xi1> -> tensor<1x2x3x5xi1>
  %scores = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x3x5xf32>
  %masked = arith.select %future_b, %hidden, %scores : tensor<1x2x3x5xi1>, tensor<1x2x3x5xf32>
  %p = nn.softmax %masked axis = 3 : tensor<1x2x3x5xf32>
  %y = nn.dot_general %p, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// T5: no scale, a position bias per head, and a constant mask added after the bias.
// CHECK-LABEL: func @summed_biases
// CHECK-SAME: %[[B:[a-z0-9]*]]: tensor<2x3x3xf32>)
// CHECK: %[[B4:.*]] = nn.reshape %[[B]] : tensor<2x3x3xf32> -> tensor<1x2x3x3xf32>
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[B4]] scale = 1.000000e+00 causal_offset = 0 :
func.func @summed_biases(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>, %bias: tensor<2x3x3xf32>) -> tensor<1x2x3x4xf32> {
  %mask = arith.constant dense<[[0.0, -1.0e4, -1.0e4], [0.0, 0.0, -1.0e4], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %scores = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x3xf32>
  %bias_b = nn.broadcast %bias dims = [1, 2, 3] : tensor<2x3x3xf32> -> tensor<1x2x3x3xf32>
  %mask_b = nn.broadcast %mask dims = [2, 3] : tensor<3x3xf32> -> tensor<1x2x3x3xf32>
  %biased = arith.addf %scores, %bias_b : tensor<1x2x3x3xf32>
  %masked = arith.addf %biased, %mask_b : tensor<1x2x3x3xf32>
  %p = nn.softmax %masked axis = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot_general %p, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// timm's CoAtNet: [heads, h, pixels], q scaled before its transpose, v times the transposed weights.
// CHECK-LABEL: func @image_order
// CHECK-SAME: (%[[Q0:.*]]: tensor<2x3x4x6xf32>, %[[K0:.*]]: tensor<2x3x4x6xf32>, %[[V0:.*]]: tensor<2x3x5x6xf32>, %[[B:.*]]: tensor<1x3x6x6xf32>)
// CHECK-DAG: %[[Q:.*]] = nn.transpose %[[Q0]] perm = [0, 1, 3, 2]
// CHECK-DAG: %[[K:.*]] = nn.transpose %[[K0]] perm = [0, 1, 3, 2]
// CHECK-DAG: %[[V:.*]] = nn.transpose %[[V0]] perm = [0, 1, 3, 2]
// CHECK: %[[Y:.*]] = nn.attention %[[Q]], %[[K]], %[[V]], %[[B]] scale = 5.000000e-01 :
// CHECK: nn.transpose %[[Y]] perm = [0, 1, 3, 2] : tensor<2x3x6x5xf32> -> tensor<2x3x5x6xf32>
func.func @image_order(%q: tensor<2x3x4x6xf32>, %k: tensor<2x3x4x6xf32>, %v: tensor<2x3x5x6xf32>, %bias: tensor<1x3x6x6xf32>) -> tensor<2x3x5x6xf32> {
  %scale = arith.constant dense<0.5> : tensor<2x3x4x6xf32>
  %qs = arith.mulf %q, %scale : tensor<2x3x4x6xf32>
  %qt = nn.transpose %qs perm = [0, 1, 3, 2] : tensor<2x3x4x6xf32> -> tensor<2x3x6x4xf32>
  %scores = nn.dot_general %qt, %k batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x3x6x4xf32>, tensor<2x3x4x6xf32> -> tensor<2x3x6x6xf32>
  %bias_b = nn.broadcast %bias dims = [0, 1, 2, 3] : tensor<1x3x6x6xf32> -> tensor<2x3x6x6xf32>
  %biased = arith.addf %scores, %bias_b : tensor<2x3x6x6xf32>
  %p = nn.softmax %biased axis = 3 : tensor<2x3x6x6xf32>
  %pt = nn.transpose %p perm = [0, 1, 3, 2] : tensor<2x3x6x6xf32> -> tensor<2x3x6x6xf32>
  %y = nn.dot_general %v, %pt batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x3x5x6xf32>, tensor<2x3x6x6xf32> -> tensor<2x3x5x6xf32>
  return %y : tensor<2x3x5x6xf32>
}

// -----

// Grouped queries: keys and values are used without their repetition for each group.
// CHECK-LABEL: func @grouped_queries
// CHECK-SAME: (%[[Q:.*]]: tensor<1x4x3x8xf32>, %[[K:.*]]: tensor<1x2x3x8xf32>, %[[V:.*]]: tensor<1x2x3x8xf32>)
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] scale = 1.000000e+00 : (tensor<1x4x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>)
func.func @grouped_queries(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<1x4x3x8xf32> {
  %k5 = nn.reshape %k : tensor<1x2x3x8xf32> -> tensor<1x2x1x3x8xf32>
  %kb = nn.broadcast %k5 dims = [0, 1, 2, 3, 4] : tensor<1x2x1x3x8xf32> -> tensor<1x2x2x3x8xf32>
  %kr = nn.reshape %kb : tensor<1x2x2x3x8xf32> -> tensor<1x4x3x8xf32>
  %kt = nn.transpose %kr perm = [0, 1, 3, 2] : tensor<1x4x3x8xf32> -> tensor<1x4x8x3xf32>
  %v5 = nn.broadcast %v dims = [0, 1, 3, 4] : tensor<1x2x3x8xf32> -> tensor<1x2x2x3x8xf32>
  %vr = nn.reshape %v5 : tensor<1x2x2x3x8xf32> -> tensor<1x4x3x8xf32>
  %scores = nn.dot_general %q, %kt batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x4x3x8xf32>, tensor<1x4x8x3xf32> -> tensor<1x4x3x3xf32>
  %p = nn.softmax %scores axis = 3 : tensor<1x4x3x3xf32>
  %y = nn.dot_general %p, %vr batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x4x3x3xf32>, tensor<1x4x3x8xf32> -> tensor<1x4x3x8xf32>
  return %y : tensor<1x4x3x8xf32>
}

// -----

// Batch and heads in one dimension, which is split only to add the mask. q and k are each multiplied by the root of the scale.
// CHECK-LABEL: func @one_batch_dimension
// CHECK-SAME: (%[[Q0:.*]]: tensor<6x3x4xf32>, %[[K0:.*]]: tensor<6x3x4xf32>, %[[V0:.*]]: tensor<6x3x4xf32>, %[[M:.*]]: tensor<2x1x1x3xi1>)
// CHECK-DAG: %[[Q:.*]] = nn.reshape %[[Q0]] : tensor<6x3x4xf32> -> tensor<2x3x3x4xf32>
// CHECK-DAG: %[[BIAS:.*]] = arith.select %[[M]], %{{.*}}, %{{.*}} : tensor<2x1x1x3xi1>, tensor<2x1x1x3xf32>
// CHECK: %[[Y:.*]] = nn.attention %[[Q]], %{{.*}}, %{{.*}}, %[[BIAS]] scale = 2.500000e-01 :
// CHECK: nn.reshape %[[Y]] : tensor<2x3x3x4xf32> -> tensor<6x3x4xf32>
func.func @one_batch_dimension(%q: tensor<6x3x4xf32>, %k: tensor<6x3x4xf32>, %v: tensor<6x3x4xf32>, %mask: tensor<2x1x1x3xi1>) -> tensor<6x3x4xf32> {
  %half = arith.constant dense<0.5> : tensor<6x3x4xf32>
  %hidden = arith.constant dense<-3.40282347E+38> : tensor<2x3x3x3xf32>
  %qs = arith.mulf %q, %half : tensor<6x3x4xf32>
  %ks = arith.mulf %half, %k : tensor<6x3x4xf32>
  %scores = nn.dot_general %qs, %ks batch = [0] x [0] contract = [2] x [2] : tensor<6x3x4xf32>, tensor<6x3x4xf32> -> tensor<6x3x3xf32>
  %apart = nn.reshape %scores : tensor<6x3x3xf32> -> tensor<2x3x3x3xf32>
  %mask_b = nn.broadcast %mask dims = [0, 1, 2, 3] : tensor<2x1x1x3xi1> -> tensor<2x3x3x3xi1>
  %masked = arith.select %mask_b, %apart, %hidden : tensor<2x3x3x3xi1>, tensor<2x3x3x3xf32>
  %together = nn.reshape %masked : tensor<2x3x3x3xf32> -> tensor<6x3x3xf32>
  %p = nn.softmax %together axis = 2 : tensor<6x3x3xf32>
  %y = nn.dot_general %p, %v batch = [0] x [0] contract = [2] x [1] : tensor<6x3x3xf32>, tensor<6x3x4xf32> -> tensor<6x3x4xf32>
  return %y : tensor<6x3x4xf32>
}

// -----

// Gemma: the scores pass through a soft cap.
// CHECK-LABEL: func @soft_cap
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 softcap = 5.000000e+01 :
func.func @soft_cap(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %cap = arith.constant dense<50.0> : tensor<1x2x3x3xf32>
  %scores = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x3xf32>
  %half = arith.constant dense<0.5> : tensor<1x2x3x3xf32>
  %scaled = arith.mulf %scores, %half : tensor<1x2x3x3xf32>
  %small = arith.divf %scaled, %cap : tensor<1x2x3x3xf32>
  %tanh = math.tanh %small : tensor<1x2x3x3xf32>
  %capped = arith.mulf %tanh, %cap : tensor<1x2x3x3xf32>
  %p = nn.softmax %capped axis = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot_general %p, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// Not raised: the softmax is over queries, not keys.
// CHECK-LABEL: func @wrong_axis
// CHECK-NOT: nn.attention
func.func @wrong_axis(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %scores = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x3xf32>
  %p = nn.softmax %scores axis = 2 : tensor<1x2x3x3xf32>
  %y = nn.dot_general %p, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// Not raised: the fill of -10 does not hide keys, because scores may be lower.
// CHECK-LABEL: func @mild_fill
// CHECK-NOT: nn.attention
func.func @mild_fill(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>, %mask: tensor<1x2x3x3xi1>) -> tensor<1x2x3x4xf32> {
  %fill = arith.constant dense<-10.0> : tensor<1x2x3x3xf32>
  %scores = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x3xf32>
  %masked = arith.select %mask, %scores, %fill : tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>
  %p = nn.softmax %masked axis = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot_general %p, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// PyTorch's ONNX exporter: NaN of the softmax become 0, as a query without keys has them.
// CHECK-LABEL: func @nan_guard
// CHECK: %[[Y:.*]] = nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 1.000000e+00 :
// CHECK-NEXT: return %[[Y]]
func.func @nan_guard(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x2x3x5xf32>
  %scores = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x3x5xf32>
  %p = nn.softmax %scores axis = 3 : tensor<1x2x3x5xf32>
  %is_nan = arith.cmpf uno, %p, %p : tensor<1x2x3x5xf32>
  %guarded = arith.select %is_nan, %zero, %p : tensor<1x2x3x5xi1>, tensor<1x2x3x5xf32>
  %y = nn.dot_general %guarded, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// The guarded softmax is also a result: it must stay.
// CHECK-LABEL: func @weights_are_used
// CHECK-NOT: nn.attention
func.func @weights_are_used(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3x5xf32>) {
  %zero = arith.constant dense<0.0> : tensor<1x2x3x5xf32>
  %scores = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x3x5xf32>
  %p = nn.softmax %scores axis = 3 : tensor<1x2x3x5xf32>
  %is_nan = arith.cmpf uno, %p, %p : tensor<1x2x3x5xf32>
  %guarded = arith.select %is_nan, %zero, %p : tensor<1x2x3x5xi1>, tensor<1x2x3x5xf32>
  %y = nn.dot_general %guarded, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x3x4xf32>
  return %y, %p : tensor<1x2x3x4xf32>, tensor<1x2x3x5xf32>
}

// -----

// torch.export: attention is whole, and its causal mask is a constant.
// CHECK-LABEL: func @causal_bias
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 causal_offset = 0 : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
func.func @causal_bias(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %mask = arith.constant dense<[[[[0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0]]]]> : tensor<1x1x3x3xf32>
  %bias = nn.broadcast %mask dims = [0, 1, 2, 3] : tensor<1x1x3x3xf32> -> tensor<2x1x3x3xf32>
  %y = nn.attention %q, %k, %v, %bias scale = 5.0e-1 : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x1x3x3xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// -----

// The window does not move with the queries: the bias stays.
// CHECK-LABEL: func @irregular_bias
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 :
func.func @irregular_bias(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %bias = arith.constant dense<[[[[0.0, 0xFF800000, 0xFF800000], [0xFF800000, 0.0, 0xFF800000], [0xFF800000, 0.0, 0.0]]]]> : tensor<1x1x3x3xf32>
  %y = nn.attention %q, %k, %v, %bias scale = 5.0e-1 : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x1x3x3xf32>) -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// Grouped queries of a whole attention: keys and values are not repeated.
// CHECK-LABEL: func @repeated_heads
// CHECK-SAME: %[[Q:.*]]: tensor<1x4x3x2xf32>, %[[K:.*]]: tensor<1x2x3x2xf32>
// CHECK: nn.attention %[[Q]], %[[K]], %[[K]] scale
func.func @repeated_heads(%q: tensor<1x4x3x2xf32>, %k: tensor<1x2x3x2xf32>) -> tensor<1x4x3x2xf32> {
  %groups = nn.broadcast %k dims = [0, 1, 3, 4] : tensor<1x2x3x2xf32> -> tensor<1x2x2x3x2xf32>
  %all = nn.reshape %groups : tensor<1x2x2x3x2xf32> -> tensor<1x4x3x2xf32>
  %y = nn.attention %q, %all, %all scale = 5.0e-1 : (tensor<1x4x3x2xf32>, tensor<1x4x3x2xf32>, tensor<1x4x3x2xf32>) -> tensor<1x4x3x2xf32>
  return %y : tensor<1x4x3x2xf32>
}

// -----

// PyTorch's exporter expands a mask for all queries: nothing is repeated.
// CHECK-LABEL: func @repeated_bias
// CHECK-SAME: %[[BIAS:arg2]]: tensor<2x1x1x5xf32>)
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[BIAS]] scale
func.func @repeated_bias(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x5x4xf32>, %bias: tensor<2x1x1x5xf32>) -> tensor<2x2x3x4xf32> {
  %all = nn.broadcast %bias dims = [0, 1, 2, 3] : tensor<2x1x1x5xf32> -> tensor<2x1x3x5xf32>
  %y = nn.attention %q, %k, %k, %all scale = 5.0e-1 : (tensor<2x2x3x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x1x3x5xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// -----

// A bias that is equal for all keys keeps them, as kernels load it along them.
// CHECK-LABEL: func @bias_of_queries
// CHECK: %[[BIAS:.*]] = nn.broadcast %{{.*}} dims = [0, 1, 2, 3] : tensor<1x1x3x1xf32> -> tensor<1x1x3x5xf32>
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[BIAS]] scale
func.func @bias_of_queries(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x5x4xf32>, %bias: tensor<1x1x3x1xf32>) -> tensor<2x2x3x4xf32> {
  %all = nn.broadcast %bias dims = [0, 1, 2, 3] : tensor<1x1x3x1xf32> -> tensor<2x2x3x5xf32>
  %y = nn.attention %q, %k, %k, %all scale = 5.0e-1 : (tensor<2x2x3x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x3x5xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// -----

// PyTorch's ONNX exporter repeats the heads of grouped queries and transposes the keys as a batch of matrices.
// CHECK-LABEL: func @repeated_heads_of_matrices
// CHECK-SAME: %[[Q:.*]]: tensor<1x4x3x2xf32>, %[[K:.*]]: tensor<1x2x5x2xf32>, %[[V:.*]]: tensor<1x2x5x2xf32>
// CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[V]] scale
func.func @repeated_heads_of_matrices(%q: tensor<1x4x3x2xf32>, %k: tensor<1x2x5x2xf32>, %v: tensor<1x2x5x2xf32>) -> tensor<1x4x3x2xf32> {
  %groups = nn.broadcast %k dims = [0, 1, 3, 4] : tensor<1x2x5x2xf32> -> tensor<1x2x2x5x2xf32>
  %matrices = nn.reshape %groups : tensor<1x2x2x5x2xf32> -> tensor<4x5x2xf32>
  %transposed = nn.transpose %matrices perm = [0, 2, 1] : tensor<4x5x2xf32> -> tensor<4x2x5xf32>
  %kt = nn.reshape %transposed : tensor<4x2x5xf32> -> tensor<1x4x2x5xf32>
  %of_v = nn.broadcast %v dims = [0, 1, 3, 4] : tensor<1x2x5x2xf32> -> tensor<1x2x2x5x2xf32>
  %all_v = nn.reshape %of_v : tensor<1x2x2x5x2xf32> -> tensor<1x4x5x2xf32>
  %scores = nn.dot_general %q, %kt batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x4x3x2xf32>, tensor<1x4x2x5xf32> -> tensor<1x4x3x5xf32>
  %p = nn.softmax %scores axis = 3 : tensor<1x4x3x5xf32>
  %y = nn.dot_general %p, %all_v batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<1x4x3x5xf32>, tensor<1x4x5x2xf32> -> tensor<1x4x3x2xf32>
  return %y : tensor<1x4x3x2xf32>
}
