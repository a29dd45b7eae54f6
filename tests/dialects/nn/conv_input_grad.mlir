// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @conv_input_grad
// CHECK: nn.conv_input_grad %arg0, %arg1 strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<1x4x4x4xf32>, tensor<4x3x3x3xf32> -> tensor<1x3x8x8xf32>
// CHECK: nn.conv_input_grad %arg2, %arg3 strides = [1] dilations = [2] low = [2] high = [0] groups = 3 channels_last : tensor<1x8x3xf32>, tensor<3x1x2xf32> -> tensor<1x8x3xf32>
func.func @conv_input_grad(%g: tensor<1x4x4x4xf32>, %w: tensor<4x3x3x3xf32>, %gl: tensor<1x8x3xf32>, %wl: tensor<3x1x2xf32>) {
  %d = nn.conv_input_grad %g, %w strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<1x4x4x4xf32>, tensor<4x3x3x3xf32> -> tensor<1x3x8x8xf32>
  %z = nn.conv_input_grad %gl, %wl strides = [1] dilations = [2] low = [2] high = [0] groups = 3 channels_last : tensor<1x8x3xf32>, tensor<3x1x2xf32> -> tensor<1x8x3xf32>
  return
}
