// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @experts_grad
// CHECK: nn.experts_grad %arg0[%arg1], %arg2, %arg3 up(%arg5 : tensor<3x6x4xf32>) down(%arg6 : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>
// CHECK: nn.experts_grad %arg0[%arg1], %arg2, %arg3 gate(%arg4 : tensor<3x6x4xf32>) up(%arg5 : tensor<3x6x4xf32>) down(%arg6 : tensor<3x4x6xf32>) down_bias(%arg7 : tensor<3x4xf32>) activation = silu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>, tensor<3x4xf32>
func.func @experts_grad(%x: tensor<2x5x4xf32>, %ids: tensor<2x5x2xi64>, %p: tensor<2x5x2xf32>, %y: tensor<2x5x4xf32>, %g: tensor<3x6x4xf32>, %u: tensor<3x6x4xf32>, %d: tensor<3x4x6xf32>, %b: tensor<3x4xf32>) {
  %dx, %dp, %du, %dd = nn.experts_grad %x[%ids], %p, %y up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>
  %r:6 = nn.experts_grad %x[%ids], %p, %y gate(%g : tensor<3x6x4xf32>) up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) down_bias(%b : tensor<3x4xf32>) activation = silu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>, tensor<3x4xf32>
  return
}
