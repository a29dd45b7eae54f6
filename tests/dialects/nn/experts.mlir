// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @experts
// CHECK: nn.experts %arg0[%arg1], %arg2 gate(%arg3 : tensor<3x6x4xf32>) up(%arg4 : tensor<3x6x4xf32>) down(%arg5 : tensor<3x4x6xf32>) activation = silu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
// CHECK: nn.experts %arg0[%arg1], %arg2 up(%arg4 : tensor<3x6x4xf32>) down(%arg5 : tensor<3x4x6xf32>) up_bias(%arg7 : tensor<3x6xf32>) down_bias(%arg8 : tensor<3x4xf32>) activation = gelu_tanh : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
// CHECK: nn.experts %arg0[%arg1], %arg2 gate(%arg3 : tensor<3x6x4xf32>) up(%arg4 : tensor<3x6x4xf32>) down(%arg5 : tensor<3x4x6xf32>) gate_bias(%arg6 : tensor<3x6xf32>) activation = gelu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
func.func @experts(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %g: tensor<3x6x4xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>, %a: tensor<3x6xf32>, %b: tensor<3x6xf32>, %c: tensor<3x4xf32>) {
  %y = nn.experts %x[%ids], %p gate(%g : tensor<3x6x4xf32>) up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = silu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  %1 = nn.experts %x[%ids], %p up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) up_bias(%b : tensor<3x6xf32>) down_bias(%c : tensor<3x4xf32>) activation = gelu_tanh : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  %2 = nn.experts %x[%ids], %p gate(%g : tensor<3x6x4xf32>) up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) gate_bias(%a : tensor<3x6xf32>) activation = gelu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>
  return
}
