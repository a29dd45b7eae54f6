// RUN: partita-opt %s --partita-choose-float8-products 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: remark: --precision f8: the factors of 2 of 6 products are rounded to 8 bits

// Products of linear layers are marked. The product of two batches, a size that is no multiple of 16, f32, and the last
// product of @main are not.
// CHECK-LABEL: func.func @main
// CHECK: call @layer
// CHECK: nn.dot_general
// CHECK-NOT: nn.float8
// CHECK: return
func.func @main(%x: tensor<2x16x32xbf16>, %w: tensor<32x64xbf16>, %narrow: tensor<32x8xbf16>) -> tensor<2x16x64xbf16> {
  %0 = call @layer(%x, %w, %narrow) : (tensor<2x16x32xbf16>, tensor<32x64xbf16>, tensor<32x8xbf16>) -> tensor<2x16x32xbf16>
  %1 = nn.dot_general %0, %w contract = [2] x [0] : tensor<2x16x32xbf16>, tensor<32x64xbf16> -> tensor<2x16x64xbf16>
  return %1 : tensor<2x16x64xbf16>
}

// CHECK-LABEL: func.func private @layer
// CHECK: nn.dot_general %{{.*}}, %{{.*}} contract = [2] x [0] {nn.float8 = "forward"}
// CHECK: nn.dot_general %{{.*}} contract = [2] x [1] {nn.float8 = "forward"}
// CHECK: nn.dot_general
// CHECK-NOT: nn.float8
// CHECK: return
func.func private @layer(%x: tensor<2x16x32xbf16>, %w: tensor<32x64xbf16>, %narrow: tensor<32x8xbf16>) -> tensor<2x16x32xbf16> {
  %0 = nn.dot_general %x, %w contract = [2] x [0] : tensor<2x16x32xbf16>, tensor<32x64xbf16> -> tensor<2x16x64xbf16>
  %1 = nn.dot_general %0, %w contract = [2] x [1] : tensor<2x16x64xbf16>, tensor<32x64xbf16> -> tensor<2x16x32xbf16>
  %2 = nn.dot_general %1, %x batch = [0] x [0] contract = [2] x [2] : tensor<2x16x32xbf16>, tensor<2x16x32xbf16> -> tensor<2x16x16xbf16>
  %3 = nn.dot_general %1, %narrow contract = [2] x [0] : tensor<2x16x32xbf16>, tensor<32x8xbf16> -> tensor<2x16x8xbf16>
  %4 = arith.extf %w : tensor<32x64xbf16> to tensor<32x64xf32>
  %5 = nn.dot_general %4, %4 contract = [1] x [1] : tensor<32x64xf32>, tensor<32x64xf32> -> tensor<32x32xf32>
  return %1 : tensor<2x16x32xbf16>
}
