// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @batch_norm
// CHECK: nn.batch_norm %arg0, %arg1, %arg2, %arg3, %arg4 feature = 1 epsilon = 1.000000e-05 : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32>
// CHECK: nn.batch_norm %arg0, %arg1, %arg2, %arg3, %arg4 feature = 1 epsilon = 1.000000e-05 training momentum = 2.000000e-01 unbiased : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
func.func @batch_norm(%x: tensor<2x3x4x4xf32>, %g: tensor<3xf32>, %b: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>) {
  %y = nn.batch_norm %x, %g, %b, %m, %v feature = 1 epsilon = 1.0e-5 : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32>
  %z:3 = nn.batch_norm %x, %g, %b, %m, %v feature = 1 epsilon = 1.000000e-05 training momentum = 2.000000e-01 unbiased : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}
