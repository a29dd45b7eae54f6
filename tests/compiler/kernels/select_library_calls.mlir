// RUN: partita-opt %s --partita-select-library-calls --canonicalize --split-input-file | FileCheck %s
// RUN: partita-opt %s --partita-select-library-calls=gpu --canonicalize --split-input-file | FileCheck %s --check-prefix=SUMS

// A weight stored as [out, in] is read through strides. The bias joins the call.
// CHECK-LABEL: @linear
// CHECK-NEXT: exec.gemm %arg0, %arg1 bias(%arg2 : tensor<4xf32>) sizes = [1, 10, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 1, 3]
// CHECK-NEXT: return
func.func @linear(%x: tensor<2x5x3xf32>, %w: tensor<4x3xf32>, %b: tensor<4xf32>) -> tensor<2x5x4xf32> {
  %0 = nn.dot_general %x, %w contract = [2] x [1] : tensor<2x5x3xf32>, tensor<4x3xf32> -> tensor<2x5x4xf32>
  %1 = nn.broadcast %b dims = [2] : tensor<4xf32> -> tensor<2x5x4xf32>
  %2 = arith.addf %0, %1 : tensor<2x5x4xf32>
  return %2 : tensor<2x5x4xf32>
}

// -----

// The strides of the call absorb a transpose of its operand.
// CHECK-LABEL: @transposed
// CHECK-NEXT: exec.gemm %arg0, %arg1 sizes = [1, 5, 4, 3] lhs_strides = [0, 1, 5] rhs_strides = [0, 4, 1]
func.func @transposed(%x: tensor<3x5xf32>, %w: tensor<3x4xf32>) -> tensor<5x4xf32> {
  %t = nn.transpose %x perm = [1, 0] : tensor<3x5xf32> -> tensor<5x3xf32>
  %0 = nn.dot_general %t, %w contract = [1] x [0] : tensor<5x3xf32>, tensor<3x4xf32> -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// -----

// Batch and heads that are not adjacent in memory are made adjacent by a copy first.
// CHECK-LABEL: @heads
// CHECK: nn.transpose
// CHECK: exec.gemm {{.*}} sizes = [6, 4, 4, 8]
func.func @heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32> {
  %t = nn.transpose %q perm = [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  %0 = nn.dot_general %t, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  return %0 : tensor<2x3x4x4xf32>
}

// -----

// If a product has another user, the bias does not join the call.
// CHECK-LABEL: @shared
// CHECK: exec.gemm %arg0, %arg1 sizes
// CHECK: arith.addf
func.func @shared(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %2 = arith.addf %0, %1 : tensor<2x4xf32>
  return %0, %2 : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// Products and convolutions of 16-bit floats become library calls too.
// CHECK-LABEL: @bf16
// CHECK-NEXT: exec.gemm {{.*}} : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16>
// CHECK-NEXT: exec.conv {{.*}} direction = weight_grad : (tensor<1x8x8x3xbf16>, tensor<1x6x6x4xbf16>) -> tensor<4x3x3x3xbf16>
func.func @bf16(%a: tensor<2x3xbf16>, %b: tensor<3x4xbf16>, %x: tensor<1x8x8x3xbf16>, %g: tensor<1x6x6x4xbf16>) -> (tensor<2x4xbf16>, tensor<4x3x3x3xbf16>) {
  %0 = nn.dot_general %a, %b contract = [1] x [0] : tensor<2x3xbf16>, tensor<3x4xbf16> -> tensor<2x4xbf16>
  %1 = nn.conv_weight_grad %x, %g strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : tensor<1x8x8x3xbf16>, tensor<1x6x6x4xbf16> -> tensor<4x3x3x3xbf16>
  return %0, %1 : tensor<2x4xbf16>, tensor<4x3x3x3xbf16>
}

// -----

// The library does not support integers.
// CHECK-LABEL: @integers
// CHECK: nn.dot_general
func.func @integers(%x: tensor<2x3xi32>, %w: tensor<3x4xi32>) -> tensor<2x4xi32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x3xi32>, tensor<3x4xi32> -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}

// -----

// CHECK-LABEL: @conv
// CHECK-NEXT: exec.conv %arg0, %arg1 bias(%arg2 : tensor<4xf32>) {{.*}} channels_last
func.func @conv(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x1x1xf32>, %b: tensor<4xf32>) -> tensor<1x8x8x4xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : tensor<1x8x8x3xf32>, tensor<4x3x1x1xf32> -> tensor<1x8x8x4xf32>
  %1 = nn.broadcast %b dims = [3] : tensor<4xf32> -> tensor<1x8x8x4xf32>
  %2 = arith.addf %0, %1 : tensor<1x8x8x4xf32>
  return %2 : tensor<1x8x8x4xf32>
}

// -----

// CHECK-LABEL: @gradients
// CHECK: exec.conv %arg2, %arg1 {{.*}} channels_last direction = input_grad : (tensor<1x6x6x4xf32>, tensor<4x3x3x3xf32>) -> tensor<1x8x8x3xf32>
// CHECK: exec.conv %arg0, %arg2 {{.*}} channels_last direction = weight_grad : (tensor<1x8x8x3xf32>, tensor<1x6x6x4xf32>) -> tensor<4x3x3x3xf32>
func.func @gradients(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x3x3xf32>, %g: tensor<1x6x6x4xf32>) -> (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>) {
  %0 = nn.conv_input_grad %g, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : tensor<1x6x6x4xf32>, tensor<4x3x3x3xf32> -> tensor<1x8x8x3xf32>
  %1 = nn.conv_weight_grad %x, %g strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : tensor<1x8x8x3xf32>, tensor<1x6x6x4xf32> -> tensor<4x3x3x3xf32>
  return %0, %1 : tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>
}

// -----

// 16-bit addends are widened and the sum is rounded. The library does all of it: it rounds once, after bias and residual.
// CHECK-LABEL: @bf16_addends
// CHECK-NEXT: %[[Y:.*]] = exec.gemm %arg0, %arg1 bias(%arg2 : tensor<4xbf16>) residual(%arg3 : tensor<2x4xbf16>) sizes = [1, 2, 4, 3] {{.*}} -> tensor<2x4xbf16>
// CHECK-NEXT: return %[[Y]]
func.func @bf16_addends(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>, %b: tensor<4xbf16>, %r: tensor<2x4xbf16>) -> tensor<2x4xbf16> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x3xbf16>, tensor<3x4xbf16> -> tensor<2x4xbf16>
  %1 = arith.extf %0 : tensor<2x4xbf16> to tensor<2x4xf32>
  %2 = arith.extf %b : tensor<4xbf16> to tensor<4xf32>
  %3 = nn.broadcast %2 dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %4 = arith.addf %1, %3 : tensor<2x4xf32>
  %5 = arith.extf %r : tensor<2x4xbf16> to tensor<2x4xf32>
  %6 = arith.addf %5, %4 : tensor<2x4xf32>
  %7 = arith.truncf %6 : tensor<2x4xf32> to tensor<2x4xbf16>
  return %7 : tensor<2x4xbf16>
}

// -----

// The sum is used unrounded: it stays outside.
// CHECK-LABEL: @bf16_unrounded
// CHECK: exec.gemm %arg0, %arg1 sizes
// CHECK: arith.addf
func.func @bf16_unrounded(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>, %b: tensor<4xbf16>) -> tensor<2x4xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x3xbf16>, tensor<3x4xbf16> -> tensor<2x4xbf16>
  %1 = arith.extf %0 : tensor<2x4xbf16> to tensor<2x4xf32>
  %2 = nn.broadcast %b dims = [1] : tensor<4xbf16> -> tensor<2x4xbf16>
  %3 = arith.extf %2 : tensor<2x4xbf16> to tensor<2x4xf32>
  %4 = arith.addf %1, %3 : tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}

// -----

// Residuals of f32 join on GPUs. Only one of two does.
// CHECK-LABEL: @residual
// CHECK: exec.gemm %arg0, %arg1 sizes
// CHECK: arith.addf
// CHECK: arith.addf
// SUMS-LABEL: @residual
// SUMS-NEXT: %[[Y:.*]] = exec.gemm %arg0, %arg1 residual(%arg2 : tensor<2x4xf32>)
// SUMS-NEXT: arith.addf %[[Y]], %arg3
func.func @residual(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %r: tensor<2x4xf32>, %s: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  %1 = arith.addf %0, %r : tensor<2x4xf32>
  %2 = arith.addf %1, %s : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// -----

// A repeated tensor is not in memory: a kernel adds it in passing.
// SUMS-LABEL: @repeated_residual
// SUMS: exec.gemm %arg0, %arg1 sizes
// SUMS: arith.addf
func.func @repeated_residual(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %r: tensor<2x1xf32>) -> tensor<2x4xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  %1 = nn.broadcast %r dims = [0, 1] : tensor<2x1xf32> -> tensor<2x4xf32>
  %2 = arith.addf %0, %1 : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// -----

// A bias joins a convolution of f32 on GPUs, too, and one of 16 bits on CPUs only.
// CHECK-LABEL: @bf16_convolution
// CHECK: exec.conv %arg0, %arg1 bias(%arg2 : tensor<4xbf16>)
// CHECK-NEXT: return
// SUMS-LABEL: @bf16_convolution
// SUMS: exec.conv %arg0, %arg1 strides
// SUMS: arith.addf
func.func @bf16_convolution(%x: tensor<1x8x8x3xbf16>, %w: tensor<4x3x3x3xbf16>, %b: tensor<4xbf16>) -> tensor<1x6x6x4xbf16> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : tensor<1x8x8x3xbf16>, tensor<4x3x3x3xbf16> -> tensor<1x6x6x4xbf16>
  %1 = arith.extf %0 : tensor<1x6x6x4xbf16> to tensor<1x6x6x4xf32>
  %2 = arith.extf %b : tensor<4xbf16> to tensor<4xf32>
  %3 = nn.broadcast %2 dims = [3] : tensor<4xf32> -> tensor<1x6x6x4xf32>
  %4 = arith.addf %1, %3 : tensor<1x6x6x4xf32>
  %5 = arith.truncf %4 : tensor<1x6x6x4xf32> to tensor<1x6x6x4xbf16>
  return %5 : tensor<1x6x6x4xbf16>
}

// -----

// SUMS-LABEL: @f32_convolution
// SUMS: exec.conv %arg0, %arg1 bias(%arg2 : tensor<4xf32>)
// SUMS-NEXT: return
func.func @f32_convolution(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> tensor<1x6x6x4xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32> -> tensor<1x6x6x4xf32>
  %1 = nn.broadcast %b dims = [3] : tensor<4xf32> -> tensor<1x6x6x4xf32>
  %2 = arith.addf %0, %1 : tensor<1x6x6x4xf32>
  return %2 : tensor<1x6x6x4xf32>
}

// -----

// Rows are multiplied by the matrices of their indices. GPUs have no such library.
// CHECK-LABEL: @grouped
// CHECK-NEXT: exec.grouped_gemm %arg0[%arg1], %arg2 : (tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32>) -> tensor<6x5xf32>
// CHECK-NEXT: exec.grouped_gemm %arg0[%arg1], %arg3 transposed : (tensor<6x4xf32>, tensor<6xi64>, tensor<3x4x5xf32>) -> tensor<6x5xf32>
// CHECK-NEXT: exec.grouped_gemm %arg0[%arg1], %{{.*}} weight_grad : (tensor<6x4xf32>, tensor<6xi64>, tensor<6x5xf32>) -> tensor<3x5x4xf32>
// SUMS-LABEL: @grouped
// SUMS-COUNT-2: nn.grouped_dot
// SUMS: nn.grouped_dot_weight_grad
func.func @grouped(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %w: tensor<3x5x4xf32>, %v: tensor<3x4x5xf32>) -> (tensor<6x5xf32>, tensor<3x5x4xf32>) {
  %0 = nn.grouped_dot %x[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  %1 = nn.grouped_dot %x[%ids], %v transposed : tensor<6x4xf32>, tensor<6xi64>, tensor<3x4x5xf32> -> tensor<6x5xf32>
  %2 = nn.grouped_dot_weight_grad %x[%ids], %1 : tensor<6x4xf32>, tensor<6xi64>, tensor<6x5xf32> -> tensor<3x5x4xf32>
  return %0, %2 : tensor<6x5xf32>, tensor<3x5x4xf32>
}

// -----

// A row that is repeated for its indices is read once.
// CHECK-LABEL: @repeated
// CHECK-NEXT: exec.grouped_gemm %arg0[%arg1], %arg2 : (tensor<3x4xf32>, tensor<6xi64>, tensor<3x5x4xf32>) -> tensor<6x5xf32>
// CHECK-NEXT: return
func.func @repeated(%x: tensor<3x4xf32>, %ids: tensor<6xi64>, %w: tensor<3x5x4xf32>) -> tensor<6x5xf32> {
  %0 = nn.broadcast %x dims = [0, 2] : tensor<3x4xf32> -> tensor<3x2x4xf32>
  %1 = nn.reshape %0 : tensor<3x2x4xf32> -> tensor<6x4xf32>
  %2 = nn.grouped_dot %1[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  return %2 : tensor<6x5xf32>
}

// -----

// So are rows with several dimensions.
// CHECK-LABEL: @repeated_positions
// CHECK-NEXT: %[[ROWS:.*]] = nn.reshape %arg0 : tensor<1x3x4xf32> -> tensor<3x4xf32>
// CHECK-NEXT: exec.grouped_gemm %[[ROWS]][%arg1], %arg2 : (tensor<3x4xf32>, tensor<6xi64>, tensor<3x5x4xf32>) -> tensor<6x5xf32>
func.func @repeated_positions(%x: tensor<1x3x4xf32>, %ids: tensor<6xi64>, %w: tensor<3x5x4xf32>) -> tensor<6x5xf32> {
  %0 = nn.broadcast %x dims = [0, 1, 3] : tensor<1x3x4xf32> -> tensor<1x3x2x4xf32>
  %1 = nn.reshape %0 : tensor<1x3x2x4xf32> -> tensor<6x4xf32>
  %2 = nn.grouped_dot %1[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  return %2 : tensor<6x5xf32>
}

// -----

// Rows repeated in another order are not.
// CHECK-LABEL: @repeated_all
// CHECK: exec.grouped_gemm {{.*}} : (tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32>) -> tensor<6x5xf32>
func.func @repeated_all(%x: tensor<3x4xf32>, %ids: tensor<6xi64>, %w: tensor<3x5x4xf32>) -> tensor<6x5xf32> {
  %0 = nn.broadcast %x dims = [1, 2] : tensor<3x4xf32> -> tensor<2x3x4xf32>
  %1 = nn.reshape %0 : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %2 = nn.grouped_dot %1[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  return %2 : tensor<6x5xf32>
}

// -----

// Integers of 4 bits with a scale per group, and a bias. A GPU's kernel unpacks them.
// CHECK-LABEL: @packed_weight
// CHECK-NEXT: exec.gemm %arg0, %arg1 scale(%arg2 : tensor<4x2xf32>) bias(%arg3 : tensor<4xf32>) sizes = [1, 3, 4, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 1, 8] group = 4 : (tensor<3x8xf32>, tensor<4x2x2xi8>) -> tensor<3x4xf32>
// SUMS-LABEL: @packed_weight
// SUMS: nn.dequantize
// SUMS: exec.gemm {{.*}} : (tensor<3x8xf32>, tensor<4x2x4xf32>) -> tensor<3x4xf32>
func.func @packed_weight(%x: tensor<3x8xf32>, %q: tensor<4x2x2xi8>, %s: tensor<4x2xf32>, %b: tensor<4xf32>) -> tensor<3x4xf32> {
  %0 = nn.dequantize %q scale(%s) : (tensor<4x2x2xi8>, tensor<4x2xf32>) -> tensor<4x2x4xf32>
  %1 = nn.reshape %0 : tensor<4x2x4xf32> -> tensor<4x8xf32>
  %2 = nn.dot_general %x, %1 contract = [1] x [1] : tensor<3x8xf32>, tensor<4x8xf32> -> tensor<3x4xf32>
  %3 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<3x4xf32>
  %4 = arith.addf %2, %3 : tensor<3x4xf32>
  return %4 : tensor<3x4xf32>
}

// -----

// The gradient of the product's input sums over the other dimension.
// CHECK-LABEL: @packed_weight_transposed
// CHECK-NEXT: exec.gemm %arg0, %arg1 scale(%arg2 : tensor<4x2xf32>) zero(%arg3 : tensor<4x2xi8>) sizes = [1, 3, 8, 4] lhs_strides = [0, 4, 1] rhs_strides = [0, 8, 1] group = 4 : (tensor<3x4xf32>, tensor<4x2x2xi8>) -> tensor<3x8xf32>
func.func @packed_weight_transposed(%g: tensor<3x4xf32>, %q: tensor<4x2x2xi8>, %s: tensor<4x2xf32>, %z: tensor<4x2xi8>) -> tensor<3x8xf32> {
  %0 = nn.dequantize %q scale(%s) zero(%z) : (tensor<4x2x2xi8>, tensor<4x2xf32>, tensor<4x2xi8>) -> tensor<4x2x4xf32>
  %1 = nn.reshape %0 : tensor<4x2x4xf32> -> tensor<4x8xf32>
  %2 = nn.dot_general %g, %1 contract = [1] x [0] : tensor<3x4xf32>, tensor<4x8xf32> -> tensor<3x8xf32>
  return %2 : tensor<3x8xf32>
}

// -----

// Integers of 8 bits with a scale per column, and a bias. Libraries of GPUs multiply floats.
// CHECK-LABEL: @byte_weight
// CHECK-NEXT: exec.gemm %arg0, %arg1 scale(%arg2 : tensor<4xf32>) bias(%arg3 : tensor<4xf32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 1, 3] : (tensor<2x3xf32>, tensor<4x3xi8>) -> tensor<2x4xf32>
// CHECK-NEXT: return
// SUMS-LABEL: @byte_weight
// SUMS: exec.gemm {{.*}} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
func.func @byte_weight(%x: tensor<2x3xf32>, %w: tensor<4x3xi8>, %s: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = arith.sitofp %w : tensor<4x3xi8> to tensor<4x3xf32>
  %1 = nn.dot_general %x, %0 contract = [1] x [1] : tensor<2x3xf32>, tensor<4x3xf32> -> tensor<2x4xf32>
  %2 = nn.broadcast %s dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %3 = arith.mulf %1, %2 : tensor<2x4xf32>
  %4 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %5 = arith.addf %3, %4 : tensor<2x4xf32>
  return %5 : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @byte_factors
// CHECK-NEXT: exec.gemm %arg0, %arg1 lhs_unsigned scale(%arg2 : tensor<4xf32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xf32>
// CHECK-NEXT: return
func.func @byte_factors(%x: tensor<2x3xi8>, %w: tensor<3x4xi8>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = arith.extui %x : tensor<2x3xi8> to tensor<2x3xi32>
  %1 = arith.extsi %w : tensor<3x4xi8> to tensor<3x4xi32>
  %2 = nn.dot_general %0, %1 contract = [1] x [0] : tensor<2x3xi32>, tensor<3x4xi32> -> tensor<2x4xi32>
  %3 = arith.sitofp %2 : tensor<2x4xi32> to tensor<2x4xf32>
  %4 = nn.broadcast %s dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %5 = arith.mulf %3, %4 : tensor<2x4xf32>
  return %5 : tensor<2x4xf32>
}

// -----

// A partial sum is scaled after its collective.
// CHECK-LABEL: @byte_weight_without_scale
// CHECK: %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT: exec.gemm %arg0, %arg1 scale(%[[ONES]] : tensor<4xf32>) sizes = [1, 2, 4, 3]
func.func @byte_weight_without_scale(%x: tensor<2x3xf32>, %w: tensor<3x4xi8>) -> tensor<2x4xf32> {
  %0 = arith.sitofp %w : tensor<3x4xi8> to tensor<3x4xf32>
  %1 = nn.dot_general %x, %0 contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @byte_sums
// CHECK-NEXT: exec.gemm %arg0, %arg1 sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK-NEXT: return
func.func @byte_sums(%x: tensor<2x3xi8>, %w: tensor<3x4xi8>) -> tensor<2x4xi32> {
  %0 = arith.extsi %x : tensor<2x3xi8> to tensor<2x3xi32>
  %1 = arith.extsi %w : tensor<3x4xi8> to tensor<3x4xi32>
  %2 = nn.dot_general %0, %1 contract = [1] x [0] : tensor<2x3xi32>, tensor<3x4xi32> -> tensor<2x4xi32>
  return %2 : tensor<2x4xi32>
}
