// RUN: partita-opt %s --partita-raise-composites | FileCheck %s

// The form that TorchScript exports before opset 17.
// CHECK-LABEL: func @layer_norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>, %[[G:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[Y:.*]] = nn.layer_norm %[[X]] scale(%[[G]] : tensor<8xf32>) bias(%[[B]] : tensor<8xf32>) axis = 2 epsilon = 9.99{{[0-9]+}}E-{{[67]}} : tensor<2x3x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm(%x: tensor<2x3x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %count = arith.constant dense<8.0> : tensor<2x3xf32>
  %epsilon = arith.constant dense<1.0e-5> : tensor<2x3x1xf32>
  %two = arith.constant dense<2.0> : tensor<2x3x8xf32>
  %sum = nn.reduce sum %x dims = [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %mean = arith.divf %sum, %count : tensor<2x3xf32>
  %mean_b = nn.broadcast %mean dims = [0, 1] : tensor<2x3xf32> -> tensor<2x3x8xf32>
  %centered = arith.subf %x, %mean_b : tensor<2x3x8xf32>
  %square = math.powf %centered, %two : tensor<2x3x8xf32>
  %sum2 = nn.reduce sum %square dims = [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %var = arith.divf %sum2, %count : tensor<2x3xf32>
  %var_k = nn.reshape %var : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %var_e = arith.addf %var_k, %epsilon : tensor<2x3x1xf32>
  %root = math.sqrt %var_e : tensor<2x3x1xf32>
  %root_b = nn.broadcast %root dims = [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %norm = arith.divf %centered, %root_b : tensor<2x3x8xf32>
  %g_b = nn.broadcast %g dims = [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %scaled = arith.mulf %norm, %g_b : tensor<2x3x8xf32>
  %b_b = nn.broadcast %b dims = [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %y = arith.addf %scaled, %b_b : tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// The form in JAX's libraries: the variance is a difference, and the scale multiplies the inverse root.
// CHECK-LABEL: func @layer_norm_fast_variance
// CHECK-NEXT: nn.layer_norm %{{.*}} scale({{.*}}) bias({{.*}}) axis = 1 epsilon = 9.99{{[0-9]+}}E-{{[67]}} : tensor<2x8xf32>
// CHECK-NEXT: return
func.func @layer_norm_fast_variance(%x: tensor<2x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  %inverse = arith.constant dense<1.250000e-01> : tensor<2xf32>
  %zero = arith.constant dense<0.0> : tensor<2xf32>
  %epsilon = arith.constant dense<1.0e-6> : tensor<2x1xf32>
  %sum = nn.reduce sum %x dims = [1] : tensor<2x8xf32> -> tensor<2xf32>
  %mean = arith.mulf %sum, %inverse : tensor<2xf32>
  %square = arith.mulf %x, %x : tensor<2x8xf32>
  %sum2 = nn.reduce sum %square dims = [1] : tensor<2x8xf32> -> tensor<2xf32>
  %mean2 = arith.mulf %sum2, %inverse : tensor<2xf32>
  %mean_sq = arith.mulf %mean, %mean : tensor<2xf32>
  %difference = arith.subf %mean2, %mean_sq : tensor<2xf32>
  %var = arith.maximumf %zero, %difference : tensor<2xf32>
  %mean_b = nn.broadcast %mean dims = [0] : tensor<2xf32> -> tensor<2x8xf32>
  %centered = arith.subf %x, %mean_b : tensor<2x8xf32>
  %var_k = nn.reshape %var : tensor<2xf32> -> tensor<2x1xf32>
  %var_e = arith.addf %var_k, %epsilon : tensor<2x1xf32>
  %inv = math.rsqrt %var_e : tensor<2x1xf32>
  %inv_b = nn.broadcast %inv dims = [0, 1] : tensor<2x1xf32> -> tensor<2x8xf32>
  %g_b = nn.broadcast %g dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
  %factor = arith.mulf %inv_b, %g_b : tensor<2x8xf32>
  %scaled = arith.mulf %centered, %factor : tensor<2x8xf32>
  %b_b = nn.broadcast %b dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
  %y = arith.addf %scaled, %b_b : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// A norm over the channels of an image.
// CHECK-LABEL: func @layer_norm_channels
// CHECK-SAME: (%[[X:.*]]: tensor<1x8x2x3xf32>, %[[G:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[X]] perm = [0, 2, 3, 1]
// CHECK-NEXT: %[[N:.*]] = nn.layer_norm %[[T]] scale(%[[G]] : tensor<8xf32>) axis = 3 epsilon = 9.99{{[0-9]+}}E-{{[67]}} : tensor<1x2x3x8xf32>
// CHECK-NEXT: nn.transpose %[[N]] perm = [0, 3, 1, 2]
// CHECK-NEXT: return
func.func @layer_norm_channels(%x: tensor<1x8x2x3xf32>, %g: tensor<8xf32>) -> tensor<1x8x2x3xf32> {
  %count = arith.constant dense<8.0> : tensor<1x2x3xf32>
  %epsilon = arith.constant dense<1.0e-6> : tensor<1x2x3xf32>
  %sum = nn.reduce sum %x dims = [1] : tensor<1x8x2x3xf32> -> tensor<1x2x3xf32>
  %mean = arith.divf %sum, %count : tensor<1x2x3xf32>
  %mean_b = nn.broadcast %mean dims = [0, 2, 3] : tensor<1x2x3xf32> -> tensor<1x8x2x3xf32>
  %centered = arith.subf %x, %mean_b : tensor<1x8x2x3xf32>
  %square = arith.mulf %centered, %centered : tensor<1x8x2x3xf32>
  %sum2 = nn.reduce sum %square dims = [1] : tensor<1x8x2x3xf32> -> tensor<1x2x3xf32>
  %var = arith.divf %sum2, %count : tensor<1x2x3xf32>
  %var_e = arith.addf %var, %epsilon : tensor<1x2x3xf32>
  %root = math.sqrt %var_e : tensor<1x2x3xf32>
  %root_b = nn.broadcast %root dims = [0, 2, 3] : tensor<1x2x3xf32> -> tensor<1x8x2x3xf32>
  %norm = arith.divf %centered, %root_b : tensor<1x8x2x3xf32>
  %g_b = nn.broadcast %g dims = [1] : tensor<8xf32> -> tensor<1x8x2x3xf32>
  %scaled = arith.mulf %norm, %g_b : tensor<1x8x2x3xf32>
  return %scaled : tensor<1x8x2x3xf32>
}

// The form in T5 and Llama.
// CHECK-LABEL: func @rms_norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xf32>, %[[G:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[Y:.*]] = nn.rms_norm %[[X]] scale(%[[G]] : tensor<8xf32>) axis = 1 epsilon = 9.99{{[0-9]+}}E-{{[67]}} : tensor<2x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @rms_norm(%x: tensor<2x8xf32>, %g: tensor<8xf32>) -> tensor<2x8xf32> {
  %count = arith.constant dense<8.0> : tensor<2xf32>
  %epsilon = arith.constant dense<1.0e-6> : tensor<2x1xf32>
  %one = arith.constant dense<1.0> : tensor<2x1xf32>
  %two = arith.constant dense<2.0> : tensor<2x8xf32>
  %square = math.powf %x, %two : tensor<2x8xf32>
  %sum = nn.reduce sum %square dims = [1] : tensor<2x8xf32> -> tensor<2xf32>
  %mean = arith.divf %sum, %count : tensor<2xf32>
  %mean_k = nn.reshape %mean : tensor<2xf32> -> tensor<2x1xf32>
  %mean_e = arith.addf %mean_k, %epsilon : tensor<2x1xf32>
  %root = math.sqrt %mean_e : tensor<2x1xf32>
  %inv = arith.divf %one, %root : tensor<2x1xf32>
  %inv_b = nn.broadcast %inv dims = [0, 1] : tensor<2x1xf32> -> tensor<2x8xf32>
  %norm = arith.mulf %x, %inv_b : tensor<2x8xf32>
  %g_b = nn.broadcast %g dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
  %y = arith.mulf %g_b, %norm : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// Not raised: a variance divided by n - 1 is that of a sample, not of a layer norm.
// CHECK-LABEL: func @unbiased
// CHECK-NOT: nn.layer_norm
func.func @unbiased(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %count = arith.constant dense<8.0> : tensor<2xf32>
  %fewer = arith.constant dense<7.0> : tensor<2xf32>
  %sum = nn.reduce sum %x dims = [1] : tensor<2x8xf32> -> tensor<2xf32>
  %mean = arith.divf %sum, %count : tensor<2xf32>
  %mean_b = nn.broadcast %mean dims = [0] : tensor<2xf32> -> tensor<2x8xf32>
  %centered = arith.subf %x, %mean_b : tensor<2x8xf32>
  %square = arith.mulf %centered, %centered : tensor<2x8xf32>
  %sum2 = nn.reduce sum %square dims = [1] : tensor<2x8xf32> -> tensor<2xf32>
  %var = arith.divf %sum2, %fewer : tensor<2xf32>
  %root = math.sqrt %var : tensor<2xf32>
  %root_b = nn.broadcast %root dims = [0] : tensor<2xf32> -> tensor<2x8xf32>
  %y = arith.divf %centered, %root_b : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
