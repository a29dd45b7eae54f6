// RUN: partita-opt %s --partita-reduce-precision=type=f16 | FileCheck %s

// Sums of integers stay exact: a convolution of integers that were computed
// from floats.
// CHECK-LABEL: func.func @main(
// CHECK: nn.conv {{.*}} : tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32> -> tensor<1x4x6x6xf32>
// CHECK-NEXT: arith.fptosi {{.*}} : tensor<1x4x6x6xf32> to tensor<1x4x6x6xi32>
func.func @main(
    %x: tensor<1x2x8x8xf32> {nn.kind = "input", nn.name = "x"},
    %w: tensor<4x2x3x3xi8> {nn.kind = "parameter", nn.name = "w"})
    -> (tensor<1x4x6x6xi32> {nn.name = "y"}) {
  %steps = arith.fptosi %x : tensor<1x2x8x8xf32> to tensor<1x2x8x8xi32>
  %0 = arith.sitofp %steps : tensor<1x2x8x8xi32> to tensor<1x2x8x8xf32>
  %1 = arith.sitofp %w : tensor<4x2x3x3xi8> to tensor<4x2x3x3xf32>
  %2 = nn.conv %0, %1 strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32> -> tensor<1x4x6x6xf32>
  %3 = arith.fptosi %2 : tensor<1x4x6x6xf32> to tensor<1x4x6x6xi32>
  return %3 : tensor<1x4x6x6xi32>
}
