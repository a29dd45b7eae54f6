// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @dot_general
// CHECK: nn.dot_general %arg0, %arg1 contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
// CHECK: nn.dot_general %arg2, %arg3 batch = [0] x [0] contract = [2] x [2] : tensor<2x5x8xbf16>, tensor<2x7x8xbf16> -> tensor<2x5x7xbf16>
func.func @dot_general(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %q: tensor<2x5x8xbf16>, %k: tensor<2x7x8xbf16>) {
  %y = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  %z = nn.dot_general %q, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x5x8xbf16>, tensor<2x7x8xbf16> -> tensor<2x5x7xbf16>
  return
}
