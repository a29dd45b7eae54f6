// RUN: partita-opt %s --partita-choose-layouts --canonicalize --split-input-file | FileCheck %s

// Images stay channels-last between layers: one transpose before the first layer and one after the last. The pooled
// shortcut and the sum become channels-last too.
// CHECK-LABEL: func.func @main
// CHECK: nn.transpose %arg0 perm = [0, 2, 3, 1]
// CHECK-NEXT: call @block(%{{.*}}) : (tensor<1x8x8x4xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>
// CHECK-NEXT: call @block_1(%{{.*}}) : (tensor<1x4x4x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x4x4xf32>
// CHECK-NEXT: nn.transpose %{{.*}} perm = [0, 3, 1, 2]
// CHECK-LABEL: func.func private @block(
// CHECK-NOT: nn.transpose
// CHECK: nn.reduce_window sum %arg0 window = [1, 2, 2, 1]
// CHECK: nn.broadcast %arg2 dims = [3]
// CHECK-NOT: nn.transpose
// CHECK: nn.conv {{.*}} channels_last
// CHECK-NOT: nn.transpose
// CHECK-LABEL: func.func private @block_1(
// CHECK-NOT: nn.transpose
// CHECK: arith.addf %arg0, %{{.*}} : tensor<1x4x4x4xf32>
// CHECK-NEXT: return
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x1x1xf32>, %s: tensor<4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = call @block(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>
  %1 = call @block_1(%0, %w) : (tensor<1x4x4x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x4x4xf32>
  return %1 : tensor<1x4x4x4xf32>
}
func.func private @block(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x1x1xf32>, %s: tensor<4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = nn.reduce_window sum %x window = [1, 1, 2, 2] strides = [1, 1, 2, 2] dilations = [1, 1, 1, 1] low = [0, 0, 0, 0] high = [0, 0, 0, 0] : tensor<1x4x8x8xf32> -> tensor<1x4x4x4xf32>
  %1 = nn.broadcast %s dims = [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %2 = arith.mulf %x, %1 : tensor<1x4x8x8xf32>
  %3 = nn.conv %2, %w strides = [2, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x4x4xf32>
  %4 = arith.addf %0, %3 : tensor<1x4x4x4xf32>
  return %4 : tensor<1x4x4x4xf32>
}
func.func private @block_1(%x: tensor<1x4x4x4xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x4x4x4xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x4x4x4xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x4x4xf32>
  %1 = arith.addf %x, %0 : tensor<1x4x4x4xf32>
  return %1 : tensor<1x4x4x4xf32>
}

// -----

// An image argument of a function without a convolution keeps its layout.
// CHECK-LABEL: func.func private @tail(
// CHECK-SAME: %arg0: tensor<1x4x6x6xf32>
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  %1 = call @tail(%0) : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %1 : tensor<1x4x6x6xf32>
}
func.func private @tail(%x: tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32> {
  %0 = math.tanh %x : tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}

// -----

// An argument that is normalised and multiplied with a channels-last value becomes channels-last too.
// CHECK-LABEL: func.func @main
// CHECK: call @backward(%{{.*}}) : (tensor<1x8x8x4xf32>, tensor<1x8x8x4xf32>, tensor<4x4x1x1xf32>) -> tensor<4xf32>
// CHECK-LABEL: func.func private @backward(
// CHECK-NOT: nn.transpose
// CHECK: nn.conv {{.*}} channels_last
// CHECK-NOT: nn.transpose
// CHECK: nn.reduce sum %arg0 dims = [0, 1, 2] : tensor<1x8x8x4xf32> -> tensor<4xf32>
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @main(%x: tensor<1x4x8x8xf32>, %g: tensor<1x4x8x8xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<4xf32> {
  %0 = call @backward(%x, %g, %w) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @backward(%x: tensor<1x4x8x8xf32>, %g: tensor<1x4x8x8xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<4xf32> {
  %0 = nn.conv %g, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = nn.reduce sum %x dims = [0, 2, 3] : tensor<1x4x8x8xf32> -> tensor<4xf32>
  %2 = nn.broadcast %1 dims = [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %3 = arith.subf %x, %2 : tensor<1x4x8x8xf32>
  %4 = arith.mulf %0, %3 : tensor<1x4x8x8xf32>
  %5 = nn.reduce sum %4 dims = [0, 2, 3] : tensor<1x4x8x8xf32> -> tensor<4xf32>
  return %5 : tensor<4xf32>
}

// -----

// A cube has the same type in both layouts. The pass terminates, because it moves each argument and result at most once.
// CHECK-LABEL: func.func private @f(
// CHECK: return
func.func @main(%a: tensor<2x4x4x4xf32>, %x: tensor<2x4x4x4xf32>, %w: tensor<4x4x1x1xf32>) -> (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>) {
  %c = nn.conv %a, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x4x4x4xf32>, tensor<4x4x1x1xf32> -> tensor<2x4x4x4xf32>
  %0:2 = call @f(%a, %x) : (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>) -> (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>)
  return %0#0, %0#1, %c : tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>
}
func.func private @f(%a: tensor<2x4x4x4xf32>, %x: tensor<2x4x4x4xf32>) -> (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>) {
  %t = nn.transpose %x perm = [0, 3, 1, 2] : tensor<2x4x4x4xf32> -> tensor<2x4x4x4xf32>
  %0 = arith.addf %a, %t : tensor<2x4x4x4xf32>
  %1 = arith.mulf %a, %x : tensor<2x4x4x4xf32>
  return %0, %1 : tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>
}

// -----

// %arg0 is added to a channels-first product, so the pass does not move a transpose of it to the caller.
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %arg0: tensor<2x4x8x8xf32>
// CHECK-NOT: nn.transpose %arg0
// CHECK: return
func.func @main(%a: tensor<2x4x8x8xf32>, %g: tensor<2x4x8x8xf32>, %w: tensor<4x4x1x1xf32>, %p: tensor<2x4x64xf32>, %q: tensor<64x64xf32>) -> tensor<2x4x8x8xf32> {
  %0 = call @f(%a, %g, %w, %p, %q) : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<2x4x64xf32>, tensor<64x64xf32>) -> tensor<2x4x8x8xf32>
  return %0 : tensor<2x4x8x8xf32>
}
func.func private @f(%a: tensor<2x4x8x8xf32>, %g: tensor<2x4x8x8xf32>, %w: tensor<4x4x1x1xf32>, %p: tensor<2x4x64xf32>, %q: tensor<64x64xf32>) -> tensor<2x4x8x8xf32> {
  %c = nn.conv %g, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x4x8x8xf32>, tensor<4x4x1x1xf32> -> tensor<2x4x8x8xf32>
  %d = nn.dot_general %p, %q contract = [2] x [0] : tensor<2x4x64xf32>, tensor<64x64xf32> -> tensor<2x4x64xf32>
  %r = nn.reshape %d : tensor<2x4x64xf32> -> tensor<2x4x8x8xf32>
  %e = arith.addf %a, %r : tensor<2x4x8x8xf32>
  %o = arith.mulf %e, %c : tensor<2x4x8x8xf32>
  return %o : tensor<2x4x8x8xf32>
}

// -----

// The image of a layer becomes channels-last behind its norm, too.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: %arg0: tensor<1x8x8x4xf32>
// CHECK-NOT: nn.transpose
// CHECK: nn.layer_norm
// CHECK-NOT: nn.transpose
// CHECK: nn.reduce_window sum %{{.*}} window = [1, 3, 3, 1]
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32> {
  %0 = call @layer(%x, %w) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}
func.func private @layer(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32> {
  %0 = nn.reshape %x : tensor<1x4x8x8xf32> -> tensor<1x256xf32>
  %1 = nn.layer_norm %0 axis = 1 epsilon = 1.0e-5 : tensor<1x256xf32>
  %2 = nn.reshape %1 : tensor<1x256xf32> -> tensor<1x4x8x8xf32>
  %3 = nn.reduce_window sum %2 window = [1, 1, 3, 3] strides = [1, 1, 1, 1] dilations = [1, 1, 1, 1] low = [0, 0, 1, 1] high = [0, 0, 1, 1] : tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>
  %4 = arith.addf %x, %3 : tensor<1x4x8x8xf32>
  %5 = nn.conv %4, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x8x8xf32>
  %6 = arith.addf %4, %5 : tensor<1x4x8x8xf32>
  return %6 : tensor<1x4x8x8xf32>
}
