// RUN: partita-opt %s --partita-choose-float8-products --partita-differentiate | FileCheck %s

// The two products that are gradients of a marked product are marked with the factor that is a gradient.
// CHECK: nn.dot_general {{.*}} {nn.float8 = "forward"} : tensor<16x32xbf16>, tensor<32x64xbf16> -> tensor<16x64xbf16>
// CHECK-DAG: nn.dot_general {{.*}} {nn.float8 = "gradient_{{[lr]}}hs"} : {{.*}} -> tensor<32x64xbf16>
// CHECK-DAG: nn.dot_general {{.*}} {nn.float8 = "gradient_lhs"} : tensor<16x64xbf16>, tensor<32x64xbf16> -> tensor<16x32xbf16>
func.func @main(%x: tensor<16x32xbf16> {nn.kind = "parameter", nn.name = "x"},
                %w: tensor<32x64xbf16> {nn.kind = "parameter", nn.name = "w"},
                %v: tensor<64x16xbf16> {nn.kind = "buffer", nn.name = "v"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<16x32xbf16>, tensor<32x64xbf16> -> tensor<16x64xbf16>
  %1 = nn.dot_general %0, %v contract = [1] x [0] : tensor<16x64xbf16>, tensor<64x16xbf16> -> tensor<16x16xbf16>
  %2 = arith.extf %1 : tensor<16x16xbf16> to tensor<16x16xf32>
  %3 = nn.reduce sum %2 dims = [0, 1] : tensor<16x16xf32> -> tensor<f32>
  return %3 : tensor<f32>
}
