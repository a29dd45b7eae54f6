// RUN: partita-opt %s --partita-repeat-channels --split-input-file | FileCheck %s
// RUN: partita-opt %s --partita-repeat-channels="most=1" --split-input-file | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: @two_outputs
// CHECK: %[[COPIES:.*]] = nn.broadcast %arg0 dims = [0, 1, 2, 3] : tensor<1x4x4x8xf32> -> tensor<1x4x4x8x2xf32>
// CHECK: %[[X:.*]] = nn.reshape %[[COPIES]] : tensor<1x4x4x8x2xf32> -> tensor<1x4x4x16xf32>
// CHECK: nn.conv %[[X]], %arg1 {{.*}} groups = 16 channels_last
// NONE-NOT: nn.broadcast
func.func @two_outputs(%x: tensor<1x4x4x8xf32>, %w: tensor<16x1x3x3xf32>) -> tensor<1x2x2x16xf32> {
  %y = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 8 channels_last : tensor<1x4x4x8xf32>, tensor<16x1x3x3xf32> -> tensor<1x2x2x16xf32>
  return %y : tensor<1x2x2x16xf32>
}

// -----

// One output per channel, several channels per group, one group, and more outputs than pay stay.
// CHECK-LABEL: @others
// CHECK-NOT: nn.broadcast
func.func @others(%x: tensor<1x4x4x8xf32>, %one: tensor<8x1x3x3xf32>, %two: tensor<8x2x3x3xf32>, %g: tensor<1x4x4x1xf32>, %w: tensor<2x1x3x3xf32>, %many: tensor<40x1x3x3xf32>)
    -> (tensor<1x2x2x8xf32>, tensor<1x2x2x8xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x40xf32>) {
  %0 = nn.conv %x, %one strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 8 channels_last : tensor<1x4x4x8xf32>, tensor<8x1x3x3xf32> -> tensor<1x2x2x8xf32>
  %1 = nn.conv %x, %two strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 4 channels_last : tensor<1x4x4x8xf32>, tensor<8x2x3x3xf32> -> tensor<1x2x2x8xf32>
  %2 = nn.conv %g, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : tensor<1x4x4x1xf32>, tensor<2x1x3x3xf32> -> tensor<1x2x2x2xf32>
  %3 = nn.conv %x, %many strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 8 channels_last : tensor<1x4x4x8xf32>, tensor<40x1x3x3xf32> -> tensor<1x2x2x40xf32>
  return %0, %1, %2, %3 : tensor<1x2x2x8xf32>, tensor<1x2x2x8xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x40xf32>
}
