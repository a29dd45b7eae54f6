// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @attention_grad
// CHECK: nn.attention_grad %arg0, %arg1, %arg2, %arg3, %arg4 scale = 1.250000e-01 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>)
// CHECK: nn.attention_grad %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 scale = 1.250000e-01 softcap = 5.000000e+01 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x1x4x4xf32>)
func.func @attention_grad(%q: tensor<1x2x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x64xf32>, %y: tensor<1x2x4x64xf32>, %g: tensor<1x2x4x64xf32>, %b: tensor<1x1x4x4xf32>) {
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %y, %g scale = 1.25e-1 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>)
  %r:4 = nn.attention_grad %q, %k, %v, %y, %g, %b scale = 1.250000e-01 softcap = 5.000000e+01 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x1x4x4xf32>)
  return
}
