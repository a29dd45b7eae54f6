// RUN: partita-opt %s --partita-select-float8-products --split-input-file | FileCheck %s

// A linear layer with a bias: the library reads bytes, and the weight's rows along the sum.
// CHECK-LABEL: @linear
// CHECK: %[[LHS:.*]] = nn.reshape %arg1
// CHECK: %[[RHS:.*]] = nn.reshape %arg3
// CHECK: %[[SCALE:.*]] = arith.mulf %[[LHS]], %[[RHS]] : tensor<1xf32>
// CHECK: %[[W:.*]] = nn.transpose %arg2 perm = [1, 0] : tensor<32x16xf8E4M3FN> -> tensor<16x32xf8E4M3FN>
// CHECK: %[[Y:.*]] = exec.gemm %arg0, %[[W]] scale(%[[SCALE]] : tensor<1xf32>) bias(%arg4 : tensor<16xbf16>) sizes = [1, 32, 16, 32] lhs_strides = [0, 32, 1] rhs_strides = [0, 1, 32]
// CHECK-NEXT: return %[[Y]]
func.func @linear(%x: tensor<2x16x32xf8E4M3FN>, %xs: tensor<f32>, %w: tensor<32x16xf8E4M3FN>, %ws: tensor<f32>, %b: tensor<16xbf16>) -> tensor<2x16x16xbf16> {
  %0 = arith.extf %x : tensor<2x16x32xf8E4M3FN> to tensor<2x16x32xf32>
  %1 = nn.broadcast %xs dims = [] : tensor<f32> -> tensor<2x16x32xf32>
  %2 = arith.mulf %0, %1 : tensor<2x16x32xf32>
  %3 = arith.truncf %2 : tensor<2x16x32xf32> to tensor<2x16x32xbf16>
  %4 = arith.extf %w : tensor<32x16xf8E4M3FN> to tensor<32x16xf32>
  %5 = nn.broadcast %ws dims = [] : tensor<f32> -> tensor<32x16xf32>
  %6 = arith.mulf %5, %4 : tensor<32x16xf32>
  %7 = arith.truncf %6 : tensor<32x16xf32> to tensor<32x16xbf16>
  %8 = nn.dot_general %3, %7 contract = [2] x [0] : tensor<2x16x32xbf16>, tensor<32x16xbf16> -> tensor<2x16x16xbf16>
  %9 = nn.broadcast %b dims = [2] : tensor<16xbf16> -> tensor<2x16x16xbf16>
  %10 = arith.extf %8 : tensor<2x16x16xbf16> to tensor<2x16x16xf32>
  %11 = arith.extf %9 : tensor<2x16x16xbf16> to tensor<2x16x16xf32>
  %12 = arith.addf %10, %11 : tensor<2x16x16xf32>
  %13 = arith.truncf %12 : tensor<2x16x16xf32> to tensor<2x16x16xbf16>
  return %13 : tensor<2x16x16xbf16>
}

// -----

// The gradient of a weight: sums run over tokens, which become the last dimension of both. A transpose of a factor joins.
// CHECK-LABEL: @weight_gradient
// CHECK-DAG: %[[G:.*]] = nn.transpose %arg0 perm = [1, 0] : tensor<32x16xf8E5M2> -> tensor<16x32xf8E5M2>
// CHECK-DAG: %[[T:.*]] = nn.transpose %arg2 perm = [1, 0] : tensor<48x32xf8E4M3FN> -> tensor<32x48xf8E4M3FN>
// CHECK-DAG: %[[X:.*]] = nn.transpose %[[T]] perm = [1, 0] : tensor<32x48xf8E4M3FN> -> tensor<48x32xf8E4M3FN>
// CHECK: exec.gemm %[[G]], %[[X]] scale({{.*}}) sizes = [1, 16, 48, 32] lhs_strides = [0, 32, 1] rhs_strides = [0, 1, 32] : (tensor<16x32xf8E5M2>, tensor<48x32xf8E4M3FN>) -> tensor<16x48xbf16>
// CHECK-NOT: nn.dot_general
func.func @weight_gradient(%g: tensor<32x16xf8E5M2>, %gs: tensor<f32>, %x: tensor<48x32xf8E4M3FN>, %xs: tensor<f32>) -> tensor<16x48xbf16> {
  %0 = arith.extf %g : tensor<32x16xf8E5M2> to tensor<32x16xf32>
  %1 = nn.broadcast %gs dims = [] : tensor<f32> -> tensor<32x16xf32>
  %2 = arith.mulf %0, %1 : tensor<32x16xf32>
  %3 = arith.truncf %2 : tensor<32x16xf32> to tensor<32x16xbf16>
  %4 = arith.extf %x : tensor<48x32xf8E4M3FN> to tensor<48x32xf32>
  %5 = nn.broadcast %xs dims = [] : tensor<f32> -> tensor<48x32xf32>
  %6 = arith.mulf %4, %5 : tensor<48x32xf32>
  %7 = arith.truncf %6 : tensor<48x32xf32> to tensor<48x32xbf16>
  %8 = nn.transpose %7 perm = [1, 0] : tensor<48x32xbf16> -> tensor<32x48xbf16>
  %9 = nn.dot_general %3, %8 contract = [0] x [0] : tensor<32x16xbf16>, tensor<32x48xbf16> -> tensor<16x48xbf16>
  return %9 : tensor<16x48xbf16>
}

// -----

// Two factors of e5m2: tensor cores have no such product.
// CHECK-LABEL: @two_of_e5m2
// CHECK: nn.dot_general
// CHECK-NOT: exec.gemm
func.func @two_of_e5m2(%g: tensor<16x16xf8E5M2>, %s: tensor<f32>) -> tensor<16x16xbf16> {
  %0 = arith.extf %g : tensor<16x16xf8E5M2> to tensor<16x16xf32>
  %1 = nn.broadcast %s dims = [] : tensor<f32> -> tensor<16x16xf32>
  %2 = arith.mulf %0, %1 : tensor<16x16xf32>
  %3 = arith.truncf %2 : tensor<16x16xf32> to tensor<16x16xbf16>
  %4 = nn.dot_general %3, %3 contract = [1] x [0] : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xbf16>
  return %4 : tensor<16x16xbf16>
}

// -----

// A size that is no multiple of 16, as dividing may leave it.
// CHECK-LABEL: @odd_size
// CHECK: nn.dot_general
// CHECK-NOT: exec.gemm
func.func @odd_size(%g: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %w: tensor<16x16xf8E4M3FN>) -> tensor<8x16xbf16> {
  %0 = arith.extf %g : tensor<8x16xf8E4M3FN> to tensor<8x16xf32>
  %1 = nn.broadcast %s dims = [] : tensor<f32> -> tensor<8x16xf32>
  %2 = arith.mulf %0, %1 : tensor<8x16xf32>
  %3 = arith.truncf %2 : tensor<8x16xf32> to tensor<8x16xbf16>
  %4 = arith.extf %w : tensor<16x16xf8E4M3FN> to tensor<16x16xf32>
  %5 = nn.broadcast %s dims = [] : tensor<f32> -> tensor<16x16xf32>
  %6 = arith.mulf %4, %5 : tensor<16x16xf32>
  %7 = arith.truncf %6 : tensor<16x16xf32> to tensor<16x16xbf16>
  %8 = nn.dot_general %3, %7 contract = [1] x [0] : tensor<8x16xbf16>, tensor<16x16xbf16> -> tensor<8x16xbf16>
  return %8 : tensor<8x16xbf16>
}

// -----

// A scale per column is not one number, and bf16 is not 8 bits.
// CHECK-LABEL: @other_factors
// CHECK-COUNT-2: nn.dot_general
// CHECK-NOT: exec.gemm
func.func @other_factors(%x: tensor<16x16xf8E4M3FN>, %s: tensor<16xf32>, %b: tensor<16x16xbf16>) -> (tensor<16x16xbf16>, tensor<16x16xbf16>) {
  %0 = arith.extf %x : tensor<16x16xf8E4M3FN> to tensor<16x16xf32>
  %1 = nn.broadcast %s dims = [1] : tensor<16xf32> -> tensor<16x16xf32>
  %2 = arith.mulf %0, %1 : tensor<16x16xf32>
  %3 = arith.truncf %2 : tensor<16x16xf32> to tensor<16x16xbf16>
  %4 = nn.dot_general %3, %3 contract = [1] x [0] : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xbf16>
  %5 = nn.dot_general %3, %b contract = [1] x [0] : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xbf16>
  return %4, %5 : tensor<16x16xbf16>, tensor<16x16xbf16>
}
