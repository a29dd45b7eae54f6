// RUN: partita-opt %s --partita-fold-batch-norm | FileCheck %s

// CHECK-LABEL: func @after_conv
// CHECK-SAME: (%[[X:.*]]: tensor<1x3x8x8xf32>, %[[W:.*]]: tensor<4x3x1x1xf32>, %[[G:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>, %[[M:.*]]: tensor<4xf32>, %[[V:.*]]: tensor<4xf32>)
// CHECK: %[[VE:.*]] = arith.addf %[[V]],
// CHECK: %[[R:.*]] = math.rsqrt %[[VE]]
// CHECK: %[[S:.*]] = arith.mulf %[[G]], %[[R]]
// CHECK: %[[SB:.*]] = nn.broadcast %[[S]] dims = [0] : tensor<4xf32> -> tensor<4x3x1x1xf32>
// CHECK: %[[WS:.*]] = arith.mulf %[[W]], %[[SB]]
// CHECK: %[[C:.*]] = nn.conv %[[X]], %[[WS]] strides = [1, 1]
// CHECK: %[[MS:.*]] = arith.mulf %[[M]], %[[S]]
// CHECK: %[[T:.*]] = arith.subf %[[B]], %[[MS]]
// CHECK: %[[TB:.*]] = nn.broadcast %[[T]] dims = [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
// CHECK: arith.addf %[[C]], %[[TB]]
// CHECK-NEXT: return
func.func @after_conv(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<1x4x8x8xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x8x8xf32>
  %y = nn.batch_norm %0, %g, %b, %m, %v feature = 1 epsilon = 1.0e-3 : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// The bias is subtracted from the mean.
// CHECK-LABEL: func @after_conv_with_bias
// CHECK-SAME: %[[CB:[a-z0-9]*]]: tensor<4xf32>)
// CHECK: nn.conv
// CHECK: %[[M:.*]] = arith.subf %{{.*}}, %[[CB]] : tensor<4xf32>
// CHECK: arith.mulf %[[M]], %{{.*}} : tensor<4xf32>
// CHECK-COUNT-1: arith.addf %{{.*}} : tensor<1x4x8x8xf32>
// CHECK-NEXT: return
func.func @after_conv_with_bias(%x: tensor<1x4x8x8xf32>, %w: tensor<4x1x1x1xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>, %cb: tensor<4xf32>) -> tensor<1x4x8x8xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 4 : tensor<1x4x8x8xf32>, tensor<4x1x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = nn.broadcast %cb dims = [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %2 = arith.addf %0, %1 : tensor<1x4x8x8xf32>
  %y = nn.batch_norm %2, %g, %b, %m, %v feature = 1 epsilon = 1.0e-3 : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// If the convolution has another user, the batch norm becomes a product and a sum.
// CHECK-LABEL: func @alone
// CHECK: %[[C:.*]] = nn.conv
// CHECK: arith.mulf %[[C]], %{{.*}} : tensor<1x4x8x8xf32>
// CHECK: return
func.func @alone(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x8x8xf32>
  %y = nn.batch_norm %0, %g, %b, %m, %v feature = 1 epsilon = 1.0e-3 : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  return %0, %y : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}

// CHECK-LABEL: func @training
// CHECK: nn.batch_norm
func.func @training(%x: tensor<2x4x8x8xf32>, %g: tensor<4xf32>) -> tensor<2x4x8x8xf32> {
  %y, %m, %v = nn.batch_norm %x, %g, %g, %g, %g feature = 1 epsilon = 1.0e-3 training : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return %y : tensor<2x4x8x8xf32>
}
