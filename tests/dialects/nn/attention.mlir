// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @attention
// CHECK: nn.attention %arg0, %arg1, %arg2 scale = 1.250000e-01 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>
// CHECK: nn.attention %arg0, %arg1, %arg2, %arg3 scale = 1.250000e-01 softcap = 5.000000e+01 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x1x4x4xf32>) -> tensor<1x2x4x64xf32>
func.func @attention(%q: tensor<1x2x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x64xf32>, %b: tensor<1x1x4x4xf32>) {
  %y = nn.attention %q, %k, %v scale = 1.25e-1 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>
  %z = nn.attention %q, %k, %v, %b scale = 1.250000e-01 softcap = 5.000000e+01 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x1x4x4xf32>) -> tensor<1x2x4x64xf32>
  return
}

// CHECK-LABEL: @attention_blocks
// CHECK: nn.attention %arg0, %arg1, %arg2 scale = 1.250000e-01 causal_offset = 0 window = 2 sinks = 1 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>
// CHECK: nn.attention %arg0, %arg1, %arg2 first_head(%arg3) scale = 1.250000e-01 blocks = dense<true> : tensor<3x2x2xi1> block_size = 2 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<i64>) -> tensor<1x2x4x64xf32>
func.func @attention_blocks(%q: tensor<1x2x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x64xf32>, %h: tensor<i64>) {
  %y = nn.attention %q, %k, %v scale = 1.25e-1 causal_offset = 0 window = 2 sinks = 1 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>
  %z = nn.attention %q, %k, %v first_head(%h) scale = 1.25e-1 blocks = dense<true> : tensor<3x2x2xi1> block_size = 2 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<i64>) -> tensor<1x2x4x64xf32>
  return
}

// CHECK-LABEL: @attention_masks
// CHECK: nn.attention %arg0, %arg1, %arg2 scale = 1.250000e-01 causal_offset = 0 window = 2 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>
// CHECK: nn.attention %arg0, %arg1, %arg2 shift(%arg3) segments(%arg4, %arg5) scale = 1.250000e-01 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<i64>, tensor<1x4xi32>, tensor<1x4xi32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4xf32>)
func.func @attention_masks(%q: tensor<1x2x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x64xf32>, %s: tensor<i64>, %i: tensor<1x4xi32>, %j: tensor<1x4xi32>) {
  %y = nn.attention %q, %k, %v scale = 1.25e-1 causal_offset = 0 window = 2 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>
  %z, %lse = nn.attention %q, %k, %v shift(%s) segments(%i, %j) scale = 1.25e-1 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<i64>, tensor<1x4xi32>, tensor<1x4xi32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4xf32>)
  return
}
