// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @attention_grad
// CHECK: nn.attention_grad %arg0, %arg1, %arg2, %arg3, %arg4 scale = 1.250000e-01 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>)
// CHECK: nn.attention_grad %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 scale = 1.250000e-01 softcap = 5.000000e+01 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x1x4x4xf32>)
func.func @attention_grad(%q: tensor<1x2x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x64xf32>, %y: tensor<1x2x4x64xf32>, %g: tensor<1x2x4x64xf32>, %b: tensor<1x1x4x4xf32>) {
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %y, %g scale = 1.25e-1 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>)
  %r:4 = nn.attention_grad %q, %k, %v, %y, %g, %b scale = 1.250000e-01 softcap = 5.000000e+01 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x1x4x4xf32>)
  return
}

// CHECK-LABEL: @attention_grad_masks
// CHECK: nn.attention_grad %arg0, %arg1, %arg2, %arg3, %arg4 scale = 1.250000e-01 causal_offset = 0 window = 2 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>)
// CHECK: nn.attention_grad %arg0, %arg1, %arg2, %arg3, %arg4 shift(%arg5) segments(%arg6, %arg7) lse(%arg8) scale = 1.250000e-01 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<i64>, tensor<1x4xi32>, tensor<1x4xi32>, tensor<1x2x4xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>)
func.func @attention_grad_masks(%q: tensor<1x2x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x64xf32>, %y: tensor<1x2x4x64xf32>, %g: tensor<1x2x4x64xf32>, %s: tensor<i64>, %i: tensor<1x4xi32>, %j: tensor<1x4xi32>, %lse: tensor<1x2x4xf32>) {
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %y, %g scale = 1.25e-1 causal_offset = 0 window = 2 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>)
  %r:3 = nn.attention_grad %q, %k, %v, %y, %g shift(%s) segments(%i, %j) lse(%lse) scale = 1.25e-1 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<i64>, tensor<1x4xi32>, tensor<1x4xi32>, tensor<1x2x4xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>)
  return
}
