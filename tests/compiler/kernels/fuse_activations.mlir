// RUN: partita-opt %s --partita-fuse-activations --split-input-file | FileCheck %s

// CHECK-LABEL: @relu
// CHECK: %[[Y:.*]] = exec.conv %arg0, %arg1 {{.*}} channels_last activation = relu :
// CHECK-NEXT: return %[[Y]]
func.func @relu(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x6x6x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x6x6x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x6x4xf32>
  %1 = arith.maximumf %0, %zero : tensor<1x6x6x4xf32>
  return %1 : tensor<1x6x6x4xf32>
}

// -----

// CHECK-LABEL: @relu6
// CHECK: exec.conv {{.*}} activation = relu6 :
// CHECK-NOT: arith.minimumf
func.func @relu6(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x6x6x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x6x6x4xf32>
  %six = arith.constant dense<6.0> : tensor<1x6x6x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x6x4xf32>
  %1 = arith.maximumf %0, %zero : tensor<1x6x6x4xf32>
  %2 = arith.minimumf %1, %six : tensor<1x6x6x4xf32>
  return %2 : tensor<1x6x6x4xf32>
}

// -----

// CHECK-LABEL: @hard_swish
// CHECK: exec.conv {{.*}} activation = hard_swish :
// CHECK-NOT: arith.mulf
func.func @hard_swish(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x6x6x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x6x6x4xf32>
  %half = arith.constant dense<0.5> : tensor<1x6x6x4xf32>
  %one = arith.constant dense<1.0> : tensor<1x6x6x4xf32>
  %sixth = arith.constant dense<0.166666672> : tensor<1x6x6x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x6x4xf32>
  %1 = arith.mulf %0, %sixth : tensor<1x6x6x4xf32>
  %2 = arith.addf %1, %half : tensor<1x6x6x4xf32>
  %3 = arith.maximumf %2, %zero : tensor<1x6x6x4xf32>
  %4 = arith.minimumf %3, %one : tensor<1x6x6x4xf32>
  %5 = arith.mulf %0, %4 : tensor<1x6x6x4xf32>
  return %5 : tensor<1x6x6x4xf32>
}

// -----

// The sixth of the product instead of the value.
// CHECK-LABEL: @hard_swish_of_sum
// CHECK: exec.conv {{.*}} activation = hard_swish :
// CHECK-NOT: arith.mulf
func.func @hard_swish_of_sum(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x6x6x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x6x6x4xf32>
  %three = arith.constant dense<3.0> : tensor<1x6x6x4xf32>
  %six = arith.constant dense<6.0> : tensor<1x6x6x4xf32>
  %sixth = arith.constant dense<0.166666672> : tensor<1x6x6x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x6x4xf32>
  %1 = arith.addf %0, %three : tensor<1x6x6x4xf32>
  %2 = arith.maximumf %1, %zero : tensor<1x6x6x4xf32>
  %3 = arith.minimumf %2, %six : tensor<1x6x6x4xf32>
  %4 = arith.mulf %3, %0 : tensor<1x6x6x4xf32>
  %5 = arith.mulf %4, %sixth : tensor<1x6x6x4xf32>
  return %5 : tensor<1x6x6x4xf32>
}

// -----

// The end of a block of ResNet: the convolution adds what an earlier one stored, then applies relu.
// CHECK-LABEL: @residual
// CHECK: %[[A:.*]] = exec.conv
// CHECK: exec.conv {{.*}} residual(%[[A]] : tensor<1x14x14x4xf32>) {{.*}} activation = relu activates_sum :
// CHECK-NOT: arith
func.func @residual(%x: tensor<1x14x14x3xf32>, %w: tensor<4x3x3x3xf32>, %v: tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x14x14x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x14x14x3xf32>, tensor<4x3x3x3xf32>) -> tensor<1x14x14x4xf32>
  %1 = exec.conv %0, %v strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x14x14x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32>
  %2 = arith.addf %1, %0 : tensor<1x14x14x4xf32>
  %3 = arith.maximumf %2, %zero : tensor<1x14x14x4xf32>
  return %3 : tensor<1x14x14x4xf32>
}

// -----

// A kernel adds to small images, and to convolutions with windows or with more input than output.
// CHECK-LABEL: @slow_residuals
// CHECK-NOT: residual
func.func @slow_residuals(%x: tensor<1x7x7x4xf32>, %w: tensor<4x4x1x1xf32>, %y: tensor<1x14x14x4xf32>, %v: tensor<4x4x3x3xf32>, %z: tensor<1x14x14x8xf32>, %u: tensor<4x8x1x1xf32>)
    -> (tensor<1x7x7x4xf32>, tensor<1x14x14x4xf32>, tensor<1x14x14x4xf32>) {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x7x7x4xf32>
  %1 = arith.addf %0, %x : tensor<1x7x7x4xf32>
  %2 = exec.conv %y, %v strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x14x14x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x14x14x4xf32>
  %3 = arith.addf %2, %y : tensor<1x14x14x4xf32>
  %4 = exec.conv %z, %u strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x14x14x8xf32>, tensor<4x8x1x1xf32>) -> tensor<1x14x14x4xf32>
  %5 = arith.addf %4, %y : tensor<1x14x14x4xf32>
  return %1, %3, %5 : tensor<1x7x7x4xf32>, tensor<1x14x14x4xf32>, tensor<1x14x14x4xf32>
}

// -----

// Another operation reads the convolution.
// CHECK-LABEL: @two_readers
// CHECK-NOT: activation =
// CHECK: arith.maximumf
func.func @two_readers(%x: tensor<1x14x14x4xf32>, %w: tensor<4x4x1x1xf32>) -> (tensor<1x14x14x4xf32>, tensor<1x14x14x4xf32>) {
  %zero = arith.constant dense<0.0> : tensor<1x14x14x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x14x14x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32>
  %1 = arith.maximumf %0, %zero : tensor<1x14x14x4xf32>
  return %0, %1 : tensor<1x14x14x4xf32>, tensor<1x14x14x4xf32>
}

// -----

// Another operation reads relu: only the minimum of relu6 stays a kernel.
// CHECK-LABEL: @two_readers_of_relu
// CHECK: exec.conv {{.*}} activation = relu :
// CHECK: arith.minimumf
func.func @two_readers_of_relu(%x: tensor<1x14x14x4xf32>, %w: tensor<4x4x1x1xf32>) -> (tensor<1x14x14x4xf32>, tensor<1x14x14x4xf32>) {
  %zero = arith.constant dense<0.0> : tensor<1x14x14x4xf32>
  %six = arith.constant dense<6.0> : tensor<1x14x14x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x14x14x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32>
  %1 = arith.maximumf %0, %zero : tensor<1x14x14x4xf32>
  %2 = arith.minimumf %1, %six : tensor<1x14x14x4xf32>
  return %1, %2 : tensor<1x14x14x4xf32>, tensor<1x14x14x4xf32>
}

// -----

// Another operation reads the gate of hard-swish.
// CHECK-LABEL: @two_readers_of_gate
// CHECK-NOT: activation =
// CHECK: arith.minimumf
func.func @two_readers_of_gate(%x: tensor<1x14x14x4xf32>, %w: tensor<4x4x1x1xf32>) -> (tensor<1x14x14x4xf32>, tensor<1x14x14x4xf32>) {
  %zero = arith.constant dense<0.0> : tensor<1x14x14x4xf32>
  %half = arith.constant dense<0.5> : tensor<1x14x14x4xf32>
  %one = arith.constant dense<1.0> : tensor<1x14x14x4xf32>
  %sixth = arith.constant dense<0.166666672> : tensor<1x14x14x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x14x14x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32>
  %1 = arith.mulf %0, %sixth : tensor<1x14x14x4xf32>
  %2 = arith.addf %1, %half : tensor<1x14x14x4xf32>
  %3 = arith.maximumf %2, %zero : tensor<1x14x14x4xf32>
  %4 = arith.minimumf %3, %one : tensor<1x14x14x4xf32>
  %5 = arith.mulf %0, %4 : tensor<1x14x14x4xf32>
  return %4, %5 : tensor<1x14x14x4xf32>, tensor<1x14x14x4xf32>
}

// -----

// A kernel computes the addend, and adds it itself.
// CHECK-LABEL: @computed_addend
// CHECK: arith.mulf
// CHECK-NOT: residual
// CHECK: arith.addf
func.func @computed_addend(%x: tensor<1x14x14x4xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32> {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x14x14x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32>
  %1 = arith.mulf %x, %x : tensor<1x14x14x4xf32>
  %2 = arith.addf %0, %1 : tensor<1x14x14x4xf32>
  return %2 : tensor<1x14x14x4xf32>
}

// -----

// The convolution is added to itself.
// CHECK-LABEL: @twice
// CHECK-NOT: residual
// CHECK: arith.addf
func.func @twice(%x: tensor<1x14x14x4xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32> {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x14x14x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32>
  %1 = arith.addf %0, %0 : tensor<1x14x14x4xf32>
  return %1 : tensor<1x14x14x4xf32>
}

// -----

// A maximum with another number is no relu.
// CHECK-LABEL: @other_number
// CHECK-NOT: activation =
// CHECK: arith.maximumf
func.func @other_number(%x: tensor<1x14x14x4xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32> {
  %one = arith.constant dense<1.0> : tensor<1x14x14x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x14x14x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32>
  %1 = arith.maximumf %0, %one : tensor<1x14x14x4xf32>
  return %1 : tensor<1x14x14x4xf32>
}

// -----

// 16-bit floats stay with kernels.
// CHECK-LABEL: @half
// CHECK-NOT: activation =
// CHECK: arith.maximumf
func.func @half(%x: tensor<1x14x14x4xbf16>, %w: tensor<4x4x1x1xbf16>) -> tensor<1x14x14x4xbf16> {
  %zero = arith.constant dense<0.0> : tensor<1x14x14x4xbf16>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x14x14x4xbf16>, tensor<4x4x1x1xbf16>) -> tensor<1x14x14x4xbf16>
  %1 = arith.maximumf %0, %zero : tensor<1x14x14x4xbf16>
  return %1 : tensor<1x14x14x4xbf16>
}

// -----

// Kernels add to convolutions with groups.
// CHECK-LABEL: @groups
// CHECK-NOT: residual
// CHECK: arith.addf
func.func @groups(%x: tensor<1x14x14x4xf32>, %w: tensor<4x1x1x1xf32>, %r: tensor<1x14x14x4xf32>) -> tensor<1x14x14x4xf32> {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 4 channels_last : (tensor<1x14x14x4xf32>, tensor<4x1x1x1xf32>) -> tensor<1x14x14x4xf32>
  %1 = arith.addf %0, %r : tensor<1x14x14x4xf32>
  return %1 : tensor<1x14x14x4xf32>
}

// -----

// Kernels add to convolutions with strides.
// CHECK-LABEL: @strides
// CHECK-NOT: residual
// CHECK: arith.addf
func.func @strides(%x: tensor<1x28x28x4xf32>, %w: tensor<4x4x1x1xf32>, %r: tensor<1x14x14x4xf32>) -> tensor<1x14x14x4xf32> {
  %0 = exec.conv %x, %w strides = [2, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x28x28x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32>
  %1 = arith.addf %0, %r : tensor<1x14x14x4xf32>
  return %1 : tensor<1x14x14x4xf32>
}

// -----

// Kernels add to images with channels first; relu joins.
// CHECK-LABEL: @channels_first
// CHECK-NOT: residual
// CHECK: exec.conv {{.*}} groups = 1 activation = relu :
func.func @channels_first(%x: tensor<1x4x14x14xf32>, %w: tensor<4x4x1x1xf32>) -> (tensor<1x4x14x14xf32>, tensor<1x4x14x14xf32>) {
  %zero = arith.constant dense<0.0> : tensor<1x4x14x14xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : (tensor<1x4x14x14xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x14x14xf32>
  %1 = arith.addf %0, %x : tensor<1x4x14x14xf32>
  %2 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : (tensor<1x4x14x14xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x14x14xf32>
  %3 = arith.maximumf %2, %zero : tensor<1x4x14x14xf32>
  return %1, %3 : tensor<1x4x14x14xf32>, tensor<1x4x14x14xf32>
}

// -----

// A residual that the convolution already adds comes before the activation.
// CHECK-LABEL: @given_residual
// CHECK: exec.conv {{.*}} residual(%arg2 : tensor<1x14x14x4xf32>) {{.*}} activation = relu activates_sum :
// CHECK-NOT: arith.maximumf
func.func @given_residual(%x: tensor<1x14x14x4xf32>, %w: tensor<4x4x1x1xf32>, %r: tensor<1x14x14x4xf32>) -> tensor<1x14x14x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x14x14x4xf32>
  %0 = exec.conv %x, %w residual(%r : tensor<1x14x14x4xf32>) strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x14x14x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32>
  %1 = arith.maximumf %0, %zero : tensor<1x14x14x4xf32>
  return %1 : tensor<1x14x14x4xf32>
}

// -----

// A convolution has one activation.
// CHECK-LABEL: @given_activation
// CHECK: exec.conv {{.*}} activation = relu6 :
// CHECK: arith.maximumf
func.func @given_activation(%x: tensor<1x14x14x4xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x14x14x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last activation = relu6 : (tensor<1x14x14x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x14x14x4xf32>
  %1 = arith.maximumf %0, %zero : tensor<1x14x14x4xf32>
  return %1 : tensor<1x14x14x4xf32>
}

// -----

// Windows, small images and narrow results, where the residual has no later use: the memory plan lets the sum take its place.
// CHECK-LABEL: @in_place
// CHECK: %[[A:.*]] = exec.conv %arg0
// CHECK: %[[B:.*]] = exec.conv %[[A]]
// CHECK: exec.conv %[[B]], %arg1 residual(%[[A]] : tensor<1x7x7x4xf32>) {{.*}} activation = relu activates_sum :
func.func @in_place(%x: tensor<1x7x7x4xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x7x7x4xf32>
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %1 = exec.conv %0, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %2 = exec.conv %1, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %3 = arith.addf %2, %0 : tensor<1x7x7x4xf32>
  %4 = arith.maximumf %3, %zero : tensor<1x7x7x4xf32>
  %5 = arith.negf %4 : tensor<1x7x7x4xf32>
  return %5 : tensor<1x7x7x4xf32>
}

// -----

// Results of the program have memory of their own.
// CHECK-LABEL: @returned
// CHECK-NOT: residual
func.func @returned(%x: tensor<1x7x7x4xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32> {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %1 = exec.conv %0, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %2 = arith.addf %1, %0 : tensor<1x7x7x4xf32>
  return %2 : tensor<1x7x7x4xf32>
}

// -----

// Layers: the callers have no later use, or one of them has.
// CHECK-LABEL: @layers
// CHECK-LABEL: func.func private @last
// CHECK: residual(%arg0
// CHECK-LABEL: func.func private @kept
// CHECK-NOT: residual
func.func @layers(%x: tensor<1x7x7x4xf32>, %w: tensor<4x4x3x3xf32>) -> (tensor<1x7x7x4xf32>, tensor<1x7x7x4xf32>) {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %1 = func.call @last(%0, %w) : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %2 = func.call @last(%1, %w) : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %3 = func.call @kept(%2, %w) : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %4 = arith.negf %2 : tensor<1x7x7x4xf32>
  return %3, %4 : tensor<1x7x7x4xf32>, tensor<1x7x7x4xf32>
}
func.func private @last(%x: tensor<1x7x7x4xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32> {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %1 = exec.conv %0, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %2 = arith.addf %1, %x : tensor<1x7x7x4xf32>
  return %2 : tensor<1x7x7x4xf32>
}
func.func private @kept(%x: tensor<1x7x7x4xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32> {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %1 = exec.conv %0, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 channels_last : (tensor<1x7x7x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x7x7x4xf32>
  %2 = arith.addf %1, %x : tensor<1x7x7x4xf32>
  return %2 : tensor<1x7x7x4xf32>
}
