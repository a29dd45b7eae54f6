// RUN: partita-opt %s --partita-choose-layouts --canonicalize --split-input-file | FileCheck %s

// A chain of convolutions has one transpose of its input and one of its result.
// CHECK-LABEL: @chain
// CHECK: nn.transpose %{{.*}} perm = [0, 2, 3, 1]
// CHECK: nn.conv {{.*}} channels_last
// CHECK-NOT: nn.transpose
// CHECK: math.tanh
// CHECK-NOT: nn.transpose
// CHECK: nn.conv {{.*}} channels_last
// CHECK: nn.transpose %{{.*}} perm = [0, 3, 1, 2]
func.func @chain(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %v: tensor<4x4x1x1xf32>) -> tensor<1x4x6x6xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  %1 = math.tanh %0 : tensor<1x4x6x6xf32>
  %2 = nn.conv %1, %v strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x4x6x6xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x6x6xf32>
  return %2 : tensor<1x4x6x6xf32>
}

// -----

// The gradients of a convolution become channels-last too.
// CHECK-LABEL: @gradients
// CHECK: nn.conv_input_grad {{.*}} channels_last : tensor<1x6x6x4xf32>, tensor<4x3x3x3xf32> -> tensor<1x8x8x3xf32>
// CHECK: nn.conv_weight_grad {{.*}} channels_last : tensor<1x8x8x3xf32>, tensor<1x6x6x4xf32> -> tensor<4x3x3x3xf32>
func.func @gradients(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %g: tensor<1x4x6x6xf32>) -> (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) {
  %0 = nn.conv_input_grad %g, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x4x6x6xf32>, tensor<4x3x3x3xf32> -> tensor<1x3x8x8xf32>
  %1 = nn.conv_weight_grad %x, %g strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<1x4x6x6xf32> -> tensor<4x3x3x3xf32>
  return %0, %1 : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>
}

// -----

// A bias per channel stays a vector and is broadcast along the last dimension.
// CHECK-LABEL: @bias
// CHECK: nn.broadcast %{{.*}} dims = [3] : tensor<4xf32> -> tensor<1x8x8x4xf32>
// CHECK: arith.addf %{{.*}} : tensor<1x8x8x4xf32>
func.func @bias(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %b: tensor<4xf32>) -> tensor<1x4x8x8xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %2 = arith.addf %0, %1 : tensor<1x4x8x8xf32>
  return %2 : tensor<1x4x8x8xf32>
}

// -----

// Pooling over the whole image leaves no transpose of the result.
// CHECK-LABEL: @pool
// CHECK: nn.reduce sum %{{.*}} dims = [1, 2] : tensor<1x8x8x4xf32> -> tensor<1x4xf32>
// CHECK-NEXT: return
func.func @pool(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = nn.reduce sum %0 dims = [2, 3] : tensor<1x4x8x8xf32> -> tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}

// -----

// A reshape that splits channels into heads and flattens the image becomes channels-last: tokens stay rows.
// CHECK-LABEL: @tokens
// CHECK: nn.reshape %{{.*}} : tensor<1x8x8x4xf32> -> tensor<1x64x2x2xf32>
// CHECK: nn.transpose %{{.*}} perm = [0, 2, 3, 1]
func.func @tokens(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x2x2x64xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = nn.reshape %0 : tensor<1x4x8x8xf32> -> tensor<1x2x2x64xf32>
  return %1 : tensor<1x2x2x64xf32>
}

// -----

// Without a convolution, the pass moves no transpose.
// CHECK-LABEL: @untouched
// CHECK: nn.transpose
// CHECK-NEXT: math.tanh
func.func @untouched(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = nn.transpose %x perm = [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %1 = math.tanh %0 : tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// -----

// A halo exchange between two convolutions stays channels-last: rows of the image become dimension 1.
// CHECK-LABEL: @halo
// CHECK: nn.conv {{.*}} channels_last
// CHECK-NEXT: exec.collective exchange %{{.*}} axes = [0, 1, 2] {dim = 1 : i64, offset = -1 : i64, size = 8 : i64, step = 4 : i64} : tensor<1x4x8x16xf32> -> tensor<1x6x8x16xf32>
// CHECK-NEXT: nn.conv {{.*}} channels_last
func.func @halo(%x: tensor<1x3x4x8xf32>, %w: tensor<16x3x1x1xf32>, %v: tensor<16x16x3x1xf32>) -> tensor<1x16x4x8xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x4x8xf32>, tensor<16x3x1x1xf32> -> tensor<1x16x4x8xf32>
  %1 = exec.collective exchange %0 axes = [0, 1, 2] {dim = 2 : i64, size = 8 : i64, step = 4 : i64, offset = -1 : i64} : tensor<1x16x4x8xf32> -> tensor<1x16x6x8xf32>
  %2 = nn.conv %1, %v strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x16x6x8xf32>, tensor<16x16x3x1xf32> -> tensor<1x16x4x8xf32>
  return %2 : tensor<1x16x4x8xf32>
}

// -----

// A bias hardly smaller than the sum: broadcasting it along other dimensions needs no transpose, so its size does not matter.
// CHECK-LABEL: @small
// CHECK: nn.conv {{.*}} channels_last
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %arg2 dims = [3] : tensor<4xf32> -> tensor<1x1x2x4xf32>
// CHECK-NEXT: arith.addf %{{.*}}, %[[B]] : tensor<1x1x2x4xf32>
func.func @small(%x: tensor<1x3x1x2xf32>, %w: tensor<4x3x1x1xf32>, %b: tensor<4xf32>) -> tensor<1x4x1x2xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x1x2xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x1x2xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<1x4x1x2xf32>
  %2 = arith.addf %0, %1 : tensor<1x4x1x2xf32>
  return %2 : tensor<1x4x1x2xf32>
}

// -----

// Transposes move below the norm of a whole image, which has the same numbers in another order.
// CHECK-LABEL: @image_norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4x5xf32>, %
func.func @image_norm(%x: tensor<2x3x4x5xf32>, %k: tensor<5x5x1x1xf32>) -> tensor<2x3x4x5xf32> {
  // CHECK: %[[JOINED:.*]] = nn.reshape %[[X]] : tensor<2x3x4x5xf32> -> tensor<2x60xf32>
  // CHECK: %[[NORM:.*]] = nn.layer_norm %[[JOINED]]
  // CHECK: %[[IMAGE:.*]] = nn.reshape %[[NORM]] : tensor<2x60xf32> -> tensor<2x3x4x5xf32>
  // CHECK: nn.conv %[[IMAGE]], %{{.*}} channels_last
  // CHECK-NOT: nn.transpose
  // CHECK: return
  %t = nn.transpose %x perm = [0, 3, 1, 2] : tensor<2x3x4x5xf32> -> tensor<2x5x3x4xf32>
  %j = nn.reshape %t : tensor<2x5x3x4xf32> -> tensor<2x60xf32>
  %n = nn.layer_norm %j axis = 1 epsilon = 1.0e-5 : tensor<2x60xf32>
  %i = nn.reshape %n : tensor<2x60xf32> -> tensor<2x5x3x4xf32>
  %c = nn.conv %i, %k strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x5x3x4xf32>, tensor<5x5x1x1xf32> -> tensor<2x5x3x4xf32>
  %r = nn.transpose %c perm = [0, 2, 3, 1] : tensor<2x5x3x4xf32> -> tensor<2x3x4x5xf32>
  return %r : tensor<2x3x4x5xf32>
}

// -----

// The scale of each number of the image would have to move, too.
// CHECK-LABEL: @scaled_image_norm
func.func @scaled_image_norm(%x: tensor<2x3x4x5xf32>, %s: tensor<60xf32>, %k: tensor<5x5x1x1xf32>) -> tensor<2x5x3x4xf32> {
  // CHECK: %[[T:.*]] = nn.transpose %{{.*}} perm = [0, 3, 1, 2]
  // CHECK: %[[JOINED:.*]] = nn.reshape %[[T]]
  // CHECK: nn.layer_norm %[[JOINED]] scale
  %t = nn.transpose %x perm = [0, 3, 1, 2] : tensor<2x3x4x5xf32> -> tensor<2x5x3x4xf32>
  %j = nn.reshape %t : tensor<2x5x3x4xf32> -> tensor<2x60xf32>
  %n = nn.layer_norm %j scale(%s : tensor<60xf32>) axis = 1 epsilon = 1.0e-5 : tensor<2x60xf32>
  %i = nn.reshape %n : tensor<2x60xf32> -> tensor<2x5x3x4xf32>
  %c = nn.conv %i, %k strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x5x3x4xf32>, tensor<5x5x1x1xf32> -> tensor<2x5x3x4xf32>
  return %c : tensor<2x5x3x4xf32>
}

// -----

// A norm over rows and columns, for each channel, stays as it is: the transpose changes its rows.
// CHECK-LABEL: @channel_norm
func.func @channel_norm(%x: tensor<2x3x4x5xf32>, %k: tensor<5x5x1x1xf32>) -> tensor<2x5x3x4xf32> {
  // CHECK: %[[T:.*]] = nn.transpose %{{.*}} perm = [0, 3, 1, 2]
  // CHECK: %[[JOINED:.*]] = nn.reshape %[[T]] : tensor<2x5x3x4xf32> -> tensor<10x12xf32>
  // CHECK: nn.layer_norm %[[JOINED]]
  %t = nn.transpose %x perm = [0, 3, 1, 2] : tensor<2x3x4x5xf32> -> tensor<2x5x3x4xf32>
  %j = nn.reshape %t : tensor<2x5x3x4xf32> -> tensor<10x12xf32>
  %n = nn.layer_norm %j axis = 1 epsilon = 1.0e-5 : tensor<10x12xf32>
  %i = nn.reshape %n : tensor<10x12xf32> -> tensor<2x5x3x4xf32>
  %c = nn.conv %i, %k strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x5x3x4xf32>, tensor<5x5x1x1xf32> -> tensor<2x5x3x4xf32>
  return %c : tensor<2x5x3x4xf32>
}
