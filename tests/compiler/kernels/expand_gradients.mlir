// RUN: partita-opt %s --partita-expand-gradients --split-input-file | FileCheck %s

// Gradients of convolutions stay, because libraries implement them.
// CHECK-LABEL: @convolutions
// CHECK-NEXT: nn.conv_weight_grad
// CHECK-NEXT: return
func.func @convolutions(%x: tensor<1x3x8x8xbf16>, %g: tensor<1x4x6x6xbf16>) -> tensor<4x3x3x3xbf16> {
  %0 = nn.conv_weight_grad %x, %g strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xbf16>, tensor<1x4x6x6xbf16> -> tensor<4x3x3x3xbf16>
  return %0 : tensor<4x3x3x3xbf16>
}

// -----

// The gradient of a windowed sum becomes a windowed sum of rows with zeros in between.
// CHECK-LABEL: @window_sum
// CHECK: nn.pad
// CHECK: nn.reduce_window sum %{{.*}} window = [3] strides = [1] {{.*}} : tensor<10xf32> -> tensor<8xf32>
func.func @window_sum(%g: tensor<4xf32>) -> tensor<8xf32> {
  %0 = nn.reduce_window_grad sum %g window = [3] strides = [2] dilations = [1] low = [1] high = [0] : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The gradient of attention stays, because it has a kernel.
// CHECK-LABEL: @attention
// CHECK-NEXT: nn.attention_grad
// CHECK-NEXT: return
func.func @attention(%q: tensor<1x2x4x8xf32>, %g: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
  %0:3 = nn.attention_grad %q, %q, %q, %g, %g scale = 1.0 : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  return %0#0, %0#1, %0#2 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
}

// -----

// So does that with the gradient of a bias, if the bias has one matrix per head for the whole batch. Heads may share keys.
// CHECK-LABEL: @bias_of_shared_keys
// CHECK-NEXT: nn.attention_grad
// CHECK-NEXT: return
func.func @bias_of_shared_keys(%q: tensor<2x4x4x8xf32>, %k: tensor<2x2x4x8xf32>, %b: tensor<1x4x4x4xf32>) -> (tensor<2x4x4x8xf32>, tensor<1x4x4x4xf32>) {
  %0:4 = nn.attention_grad %q, %k, %k, %q, %q, %b scale = 1.0 : (tensor<2x4x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>, tensor<1x4x4x4xf32>) -> (tensor<2x4x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<1x4x4x4xf32>)
  return %0#0, %0#3 : tensor<2x4x4x8xf32>, tensor<1x4x4x4xf32>
}

// -----

// CHECK-LABEL: @bias_of_each_batch_element
// CHECK-NOT: nn.attention_grad
func.func @bias_of_each_batch_element(%q: tensor<2x4x4x8xf32>, %b: tensor<2x4x4x4xf32>) -> (tensor<2x4x4x8xf32>, tensor<2x4x4x4xf32>) {
  %0:4 = nn.attention_grad %q, %q, %q, %q, %q, %b scale = 1.0 : (tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>, tensor<2x4x4x4xf32>) -> (tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>, tensor<2x4x4x8xf32>, tensor<2x4x4x4xf32>)
  return %0#0, %0#3 : tensor<2x4x4x8xf32>, tensor<2x4x4x4xf32>
}

// -----

// CHECK-LABEL: @softcap
// CHECK-NOT: nn.attention_grad
// CHECK-COUNT-5: nn.dot_general
func.func @softcap(%q: tensor<1x2x4x8xf32>, %g: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
  %0:3 = nn.attention_grad %q, %q, %q, %g, %g scale = 1.0 softcap = 2.0 : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  return %0#0, %0#1, %0#2 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
}

// -----

// The gradient of a maximum over images is written between transposes, which cancel with those of convolutions. The places of the maxima and
// the gradient are spread by the stride before they are compared.
// CHECK-LABEL: @window_max
// CHECK: nn.transpose %arg1 perm = [0, 2, 3, 1] : tensor<1x3x8x8xf32> -> tensor<1x8x8x3xf32>
// CHECK-NOT: nn.reduce_window_grad
// CHECK: %[[CHOSEN:.*]] = arith.select %{{.*}} : tensor<1x8x8x3xi1>, tensor<1x8x8x3xf32>
// CHECK: nn.transpose %{{.*}} perm = [0, 3, 1, 2] : tensor<1x8x8x3xf32> -> tensor<1x3x8x8xf32>
// CHECK-NEXT: return
func.func @window_max(%g: tensor<1x3x4x4xf32>, %x: tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32> {
  %0 = nn.reduce_window_grad max %g, %x window = [1, 1, 3, 3] strides = [1, 1, 2, 2] dilations = [1, 1, 1, 1] low = [0, 0, 1, 1] high = [0, 0, 0, 0] : (tensor<1x3x4x4xf32>, tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
  return %0 : tensor<1x3x8x8xf32>
}
func.func @convolution(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}

// -----

// A window over channels keeps their place.
// CHECK-LABEL: @window_of_channels
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @window_of_channels(%g: tensor<1x2x4x4xf32>, %x: tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = nn.reduce_window_grad max %g, %x window = [1, 2, 1, 1] strides = [1, 2, 1, 1] dilations = [1, 1, 1, 1] low = [0, 0, 0, 0] high = [0, 0, 0, 0] : (tensor<1x2x4x4xf32>, tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %0 : tensor<1x4x4x4xf32>
}
