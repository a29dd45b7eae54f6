// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @reduce_window_grad
// CHECK: nn.reduce_window_grad max %arg0, %arg1 window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK: nn.reduce_window_grad sum %arg0 window = [1, 3] strides = [1, 2] dilations = [1, 1] low = [0, 1] high = [0, 0] : (tensor<2x4xf32>) -> tensor<2x8xf32>
func.func @reduce_window_grad(%g: tensor<2x4xf32>, %x: tensor<2x8xf32>) {
  %d = nn.reduce_window_grad max %g, %x window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %e = nn.reduce_window_grad sum %g window = [1, 3] strides = [1, 2] dilations = [1, 1] low = [0, 1] high = [0, 0] : (tensor<2x4xf32>) -> tensor<2x8xf32>
  return
}
