// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @reduce_window
// CHECK: nn.reduce_window max %arg0 window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : tensor<2x8xf32> -> tensor<2x4xf32>
func.func @reduce_window(%x: tensor<2x8xf32>) {
  %y = nn.reduce_window max %x window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : tensor<2x8xf32> -> tensor<2x4xf32>
  return
}
